"""The bar moves while nothing is reported, and never outlives its work."""

import io
import threading

import pytest

from jaxbandit._io import progress


def workers():
    return [thread for thread in threading.enumerate() if thread.name == "jaxbandit-progress"]


@pytest.fixture
def drawn(monkeypatch):
    """A bar on a stream of ours, drawn without a pause; an event that is set when it was drawn for the third time."""
    import tqdm.auto

    third, count = threading.Event(), []

    class Bar(tqdm.auto.tqdm):
        def __init__(self, **options):
            super().__init__(file=io.StringIO(), **options)

        def refresh(self, *arguments, **options):
            count.append(self.n)
            if len(count) == 3:
                third.set()
            return super().refresh(*arguments, **options)

    monkeypatch.setattr(tqdm.auto, "tqdm", Bar)
    monkeypatch.setattr(progress, "TICK", 0.001)
    monkeypatch.setattr(progress, "is_watched", lambda: True)
    return third


def test_it_is_drawn_while_nothing_is_reported(drawn):
    """Rejects a bar that is only drawn when a block of runs is done: nothing is ever reported here."""
    with progress.Progress(True, total=1000, text="512 runs"):
        assert drawn.wait(60)
    for thread in workers():
        thread.join(60)
    assert not workers()


def test_a_closed_stream_ends_the_drawing_and_not_the_work(drawn, monkeypatch):
    with progress.Progress(True, total=1000, text="512 runs") as bar:
        (thread,) = workers()

        def broken(*_, **__):
            raise BrokenPipeError

        monkeypatch.setattr(bar._bar, "refresh", broken)
        thread.join(60)
        assert not thread.is_alive()


def test_a_file_gets_no_bar(capsys):
    """Rejects a bar that is drawn into a redirected stderr, which grows by kilobytes."""
    with progress.Progress(True, total=1000, text="512 runs") as bar:
        for _ in range(100):
            bar.update(10, "more")
    assert capsys.readouterr().err == ""


def test_a_file_gets_a_line_now_and_then(monkeypatch):
    class File(io.StringIO):
        def flush(self):
            if self.getvalue().count("50%") >= 2:  # lines of 0% may come before the update
                written.set()

    written, file = threading.Event(), File()
    monkeypatch.setattr(progress, "LINES_EVERY", 0.001)
    monkeypatch.setattr("sys.stderr", file)
    with progress.Progress(True, total=1000, text="512 runs") as bar:
        bar.update(500)
        assert written.wait(60)
    assert any(line.startswith("512 runs:  50%, ") for line in file.getvalue().splitlines())
    assert "\r" not in file.getvalue()


def test_nothing_is_started_unless_shown():
    before = workers()
    with progress.Progress(False, total=10, text=""):
        assert {*workers()} <= {*before}
