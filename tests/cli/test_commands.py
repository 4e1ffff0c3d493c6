"""Every command answers a wrong call with one sentence and the right exit status, and leaves nothing behind."""

import inspect
import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import jaxbandit
from jaxbandit._provenance.package_code import package_digest
from jaxbandit.cli import app, demo, doctor, errors, run

GAME = ["--learner", "uniform", "--losses", "bernoulli(means=[0.3, 0.5])", "--delays", "fixed(delay=1)"]
SMALL = ["--rounds", "20", "--runs", "4"]
SPEC = """
rounds = 20
runs = 4
[[learners]]
name = "uniform"
[[losses]]
name = "bernoulli"
means = [0.3, 0.5]
[[delays]]
name = "fixed"
delay = 1
"""


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """A command in this process, in a folder with a spec, a file, a folder and one that nobody may write to."""
    monkeypatch.chdir(tmp_path)
    Path("spec.toml").write_text(SPEC)
    Path("file").write_text("mine")
    Path("folder").mkdir()

    def run(*words: str) -> tuple[int, str]:
        before = _files()
        status = app.call(words)
        said = capsys.readouterr()
        if status:
            assert _files() == before, "a command that fails leaves nothing behind"
        return status, " ".join((said.out + said.err).split())

    return run


def _files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in Path().rglob("*")}


# command line, exit status, what must be said
WRONG = [
    ("nope", 2, "there is no command 'nope'; there are advise, demo"),
    ("runn", 2, "there is no command 'runn'; did you mean 'run'\\? `jaxbandit --help` lists the commands"),
    ("swep spec.toml", 2, "did you mean 'sweep'"),
    ("--nonsense", 2, "`jaxbandit --help` lists the options"),
    ("nope --help", 2, "`jaxbandit --help` lists the commands"),
    ("run --no-force", 2, "`jaxbandit run --help` lists the options"),
    ("run --nope", 2, "`jaxbandit run --help` lists the options"),
    ("run --nope 3", 2, "Unknown option"),
    ("run spec.toml --runs 1.5", 2, "--runs: '1.5' is not a whole number"),
    ("run spec.toml --rounds 20.9", 2, "--rounds: '20.9' is not a whole number"),
    ("run spec.toml --rounds 1e", 2, "'1e' is not a whole number"),
    ("run spec.toml --rounds -5", 2, "rounds"),
    ("run spec.toml --rounds 0", 2, "rounds: .*0"),
    ("sweep spec.toml --out new --runs 1.5", 2, "--runs: '1.5' is not a whole number"),
    ("sweep spec.toml --out new --rounds 20.9", 2, "--rounds: '20.9' is not a whole number"),
    ("sweep spec.toml --out file", 2, "--out file: .*file is a file; give a folder"),
    ("sweep spec.toml --out file/below", 2, "--out file/below: .*file is a file; give a folder"),
    ("sweep nowhere.toml --out new", 2, "nowhere.toml.* no such file"),
    ("sweep spec.toml", 2, '--out"? requires an argument'),
    ("run spec.toml --out .", 2, "--out .: this is a folder; give the beginning of a file name, such as run"),
    ("run spec.toml --out folder", 2, "--out folder: this is a folder"),
    ("run spec.toml --out folder/..", 2, "this is a folder"),
    ("run spec.toml --out file/run", 2, "--out file/run: .*file is a file"),
    ("run nowhere.toml", 2, "nowhere.toml"),
    ("run spec.toml --seed 3", 2, "--seed: give a spec or name"),
    ("run spec.toml --learner mine:Learner", 2, "--learner: give a spec or name"),
    ("demo --out file", 2, "--out file: .*file is a file; give a folder"),
    ("demo --seed 0.5", 2, "--seed: '0.5' is not a whole number"),
    ("tune nowhere.toml", 2, "nowhere.toml.* no such file"),
    ("tune spec.toml --out file", 2, "--out file: .*file is a file; give a folder"),
    ("doctor --arms 0", 2, "--arms 0 .*whole numbers, 1 or more"),
    ("doctor --arms 1e9", 2, "--arms 1000000000: 100000 at most"),
    ("doctor --learner bobww(max_delay=10)", 2, "'bobww' is not known; did you mean 'bobw'"),
    ("doctor --delays fixd(10)", 2, "'fixd' is not known; did you mean 'fixed'"),
    ("status folder", 1, "folder"),
    ("status nowhere", 1, "nowhere"),
    ("verify nowhere", 1, "nowhere"),
    ("export nowhere out.nc", 1, "nowhere"),
    ("export nowhere out.csv", 2, "out.csv: the name of an export ends in .nc or .zarr"),
    ("export nowhere file/out.nc", 2, "file is a file"),
    ("report nowhere", 1, "nowhere"),
    ("report nowhere --out file", 2, "--out file: .*file is a file; give a folder"),
]


@pytest.mark.parametrize(("line", "status", "said"), WRONG, ids=[line for line, _, _ in WRONG])
def test_wrong_command_line(call, line, status, said):
    got = call(*line.split())
    assert got[0] == status, got[1]
    assert re.search(said, got[1]), got[1]
    assert "Traceback" not in got[1]


def test_a_folder_of_somebody_else(call, monkeypatch):
    # Whoever runs the tests may be allowed everything, so the answer of the system is made up.
    monkeypatch.setattr(os, "access", lambda *_: False)
    status, said = call("demo", "--out", "folder/new")
    assert (status, "nothing can be written into" in said) == (2, True), said


def test_dots_in_a_name_stay(call):
    for out, files in (("v0.1", "v0.1"), ("v0.2", "v0.2"), ("deep/v1.npz", "deep/v1"), ("v3.png", "v3")):
        status, said = call("run", *GAME, *SMALL, "--out", out)
        assert status == 0, said
        assert f"written: {files}.png, {files}.npz" in said
        assert Path(f"{files}.npz").stat().st_size
        assert Path(f"{files}.png").stat().st_size


def test_whole_numbers_are_written_in_three_ways(call):
    for rounds in ("1000", "1_000", "1e3"):
        status, said = call("run", *GAME, "--rounds", rounds, "--runs", "4", "--out", rounds)
        assert status == 0
        assert " 1000 " in said


def test_run_imports_what_lies_in_the_current_folder(call, monkeypatch):
    Path("my_own_module.py").write_text(
        "import jaxbandit as jb\nfrom jaxbandit._core.fields import pytree_dataclass\n\n@pytree_dataclass\nclass Mine(jb.Uniform):\n    pass\n"
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    game = ["--learner", "my_own_module:Mine", *GAME[2:], *SMALL]
    status, said = call("run", *game)
    assert (status, "--imports" in said) == (2, True)
    status, said = call("run", *game, "--imports")
    assert status == 0, said
    assert os.environ["PYTHONPATH"] == f"{Path.cwd()}{os.pathsep}elsewhere"


# What a command may run into, the exit status, and the sentence.
FAULTS = [
    (OSError(28, "No space left on device", "out.nc"), 1, "out.nc: the disk is full; make room"),
    (OSError(30, "Read-only file system", "out.nc"), 1, "out.nc: this cannot be written (Read-only file system); choose"),
    (ImportError("export needs netCDF4"), 1, "export needs netCDF4"),
    (ZeroDivisionError("division by zero\nsecond line"), 1, "ZeroDivisionError: division by zero (JAXBANDIT_TRACEBACK=1 shows where)"),
    (ValueError(), 1, "ValueError: no message"),
    (errors.CommandError("--x 3: wrong"), 2, "--x 3: wrong"),
    (KeyboardInterrupt(), 130, "stopped; all is as it was"),
    (BrokenPipeError(), 1, ""),
]  # fmt: skip


@pytest.mark.parametrize(("error", "status", "said"), FAULTS, ids=[type(error).__name__ for error, _, _ in FAULTS])
def test_what_a_command_raises_is_a_sentence(error, status, said, capsys, monkeypatch, tmp_path):
    def fails() -> None:
        raise error

    with (tmp_path / "printed").open("w+") as printed:
        monkeypatch.setattr(sys, "stdout", printed)  # a broken pipe closes it, which should not be that of the tests
        assert errors.speak(fails, "all is as it was") == status
    assert (tmp_path / "printed").read_text() == ""
    got = capsys.readouterr()
    assert said in got.err
    assert "Traceback" not in got.err


def test_a_traceback_for_those_who_ask(capsys, monkeypatch):
    monkeypatch.setenv("JAXBANDIT_TRACEBACK", "1")
    assert errors.speak(lambda: 1 / 0, "") == 1  # type: ignore[arg-type, return-value]
    assert "Traceback" in capsys.readouterr().err


PROGRAM = [sys.executable, "-c", "from jaxbandit.cli import main; main()"]


def test_a_platform_that_is_not_there(tmp_path):
    # With the extra `compilers` JAX has a plugin for CUDA, which prints a traceback of its own.
    line = [*PROGRAM, "run", *GAME, *SMALL]
    done = subprocess.run(
        line, env={**os.environ, "JAX_PLATFORMS": "rocm"}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "JAX_PLATFORMS=rocm: JAX cannot start this platform here; set it to cpu, or unset it" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
def test_interrupted(tmp_path):
    """Ctrl-C ends a run that would take minutes within seconds, says what is left (nothing), and leaves nothing."""
    line = [*PROGRAM, "run", *GAME, "--rounds", "200_000_000", "--runs", "512"]
    with subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(15)  # until it computes
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        try:
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert time.monotonic() - begun < errors.PATIENCE + 5
    assert process.returncode == 130
    assert said.rstrip().endswith("stopped; nothing was written")
    assert "Traceback" not in said
    assert not list(tmp_path.iterdir())


def test_a_reader_that_has_seen_enough(tmp_path):
    """`jaxbandit run ... 2>&1 | head -1` ends when ``head`` does."""
    often = "from jaxbandit import cli, progress; progress.LINES_EVERY = 0.1; cli.main()"
    line = [sys.executable, "-c", often, "run", *GAME, "--rounds", "200_000_000", "--runs", "512"]
    with subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        assert process.stdout.read(1)
        process.stdout.close()
        try:
            assert process.wait(timeout=60) == 1
        finally:
            process.kill()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "file"),
    [
        (["run", *GAME, *SMALL], "run.npz"),
        (["run", *GAME, *SMALL], "run.png"),
        (["demo"], "demo.png"),
        (["tune", "spec.toml", "--out", "tuned"], "tuned/tuned.json"),
        (["advise", "log.csv", "--arm", "arm"], "advice.html"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_nothing_is_overwritten_unless_forced(call, line, file):
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text("mine")
    status, said = call(*line)
    assert status == 2, said
    assert "--force" in said
    assert Path(file).read_text() == "mine"


def test_force_overwrites(call):
    Path("run.npz").write_text("mine")
    assert call("run", *GAME, *SMALL, "--force")[0] == 0
    assert Path("run.npz").read_bytes() != b"mine"


@pytest.mark.parametrize("command", [command.__name__ for command in app.COMMANDS if command is not doctor.doctor])
def test_commands_without_arguments(call, monkeypatch, command):
    """Those that need some say which; the others begin (``doctor`` as well, which only prints)."""
    monkeypatch.setattr("jaxbandit.cli.demo.check_folder", _begun)
    status, said = call(command)
    assert status == 2, said
    needs = {"run": "no spec is given", "demo": "begun"}
    assert needs.get(command, "requires an argument") in said
    assert "Traceback" not in said


def _begun(*_: object) -> None:
    raise errors.CommandError("begun")


def ended(line: str, folder: Path) -> tuple[int, str]:
    """Exit status and stderr of a line of the shell."""
    program = " ".join([sys.executable, "-c", "'from jaxbandit.cli import main; main()'"])
    done = subprocess.run(["bash", "-c", line.replace("jaxbandit", program)], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_streams_that_take_nothing(tmp_path):
    """A closed standard output is no fault; a full one is told in a sentence."""
    assert ended("jaxbandit --version >&-", tmp_path) == (0, "")
    status, said = ended("jaxbandit status nowhere >&-", tmp_path)
    assert (status, said) == (1, "nowhere: there is no such folder\n")
    status, said = ended("jaxbandit --help >/dev/full", tmp_path)
    assert (status, said) == (1, "the output: the disk is full; make room and run the same command\n")


def test_interrupted_while_it_starts(tmp_path):
    """Ctrl-C before the package is imported."""
    slow = "import sys, time, jaxbandit_command\nclass Finder:\n    def find_spec(self, name, *_):\n        "
    slow += "print('importing', flush=True)\n        time.sleep(60)\nsys.meta_path.insert(0, Finder())\njaxbandit_command.main()"
    with subprocess.Popen([sys.executable, "-c", slow], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "\nstopped; nothing was written\n")


def test_help_and_version(capsys):
    for words in ([], ["--help"], *([command.__name__, "--help"] for command in app.COMMANDS)):
        assert app.call(words) == 0
        assert "jaxbandit" in capsys.readouterr().out
    assert app.call(["--version"]) == 0
    assert capsys.readouterr().out == f"{jaxbandit.__version__} (code {package_digest()[:16]})\n"


def test_help_is_grouped_and_each_command_is_in_one_group(capsys):
    grouped = [command for commands in app.GROUPS.values() for command in commands]
    assert sorted(map(id, grouped)) == sorted(map(id, app.COMMANDS))
    assert app.call(["--help"]) == 0
    text = capsys.readouterr().out
    assert sorted(app.GROUPS, key=text.index) == list(app.GROUPS)


@pytest.mark.parametrize("command", app.COMMANDS, ids=lambda command: command.__name__)
def test_help_is_phrases_with_an_example(capsys, monkeypatch, command):
    """Each option has a phrase, each command an example whose options exist; a flag is shown once, without its negative."""
    monkeypatch.setenv("COLUMNS", "200")
    assert app.call([command.__name__, "--help"]) == 0
    text = capsys.readouterr().out
    examples = re.findall(rf"^Example: jaxbandit {command.__name__}\b.*$", text, re.MULTILINE)
    assert len(examples) == 1
    parameters = inspect.signature(command).parameters
    options = {name.replace("_", "-") for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY}
    assert set(re.findall(r"--([a-z-]+)", examples[0])) <= options
    described = re.findall(r"^(\w+)\n    ([^\n]+)", (inspect.getdoc(command) or "").partition("----------")[2], re.MULTILINE)
    assert [name for name, _ in described] == list(parameters)
    for name, phrase in described:
        assert re.match(r"[A-Z].* .*[.]$", phrase), (name, phrase)
    assert set(re.findall(r"--no-[a-z-]+", text)) <= {"--no-states"}


def test_the_example_of_run_runs(call, capsys):
    example = re.search(r"Example: jaxbandit (run .*)", run.run.__doc__ or "")
    assert example is not None
    status, said = call(*shlex.split(example[1]), *SMALL)
    assert status == 0, said


def test_the_demo_says_what_it_measured_and_what_to_do_next(call, monkeypatch):
    monkeypatch.setattr(demo, "ROUNDS", 400)
    monkeypatch.setattr(demo, "RUNS", 8)
    status, said = call("demo")
    assert status == 0, said
    assert Path("demo.png").stat().st_size
    assert "25,600 rounds simulated" in said  # 4 algorithms, 2 environments, 8 runs, 400 rounds
    assert re.search(
        r"[\d.]+ million rounds/s without compilation; compilation took [\d.]+ s\. .* Next: look at the figure, demo.png", said
    )


def test_the_figure_of_the_demo(monkeypatch):
    """Two panels with one scale, a label at the end of each curve and no legend, titles that name the lowest regret."""
    monkeypatch.setattr(demo, "ROUNDS", 400)
    monkeypatch.setattr(demo, "RUNS", 8)
    results = {
        title: demo._simulated(title, losses, 0, {"compilation": 0.0, "simulation": 0.0})
        for title, losses in demo.environments().items()
    }
    figure = demo.drawn(results)
    assert len({panel.get_ylim() for panel in figure.axes}) == 1
    for panel, of in zip(figure.axes, results.values(), strict=True):
        assert (panel.get_xscale(), panel.get_yscale(), panel.get_legend()) == ("log", "log", None)
        assert [text.get_text() for text in panel.texts] == list(demo.learners())
        lowest = min(of, key=lambda name: of[name].regret[-1].mean())
        assert f"lowest {lowest}" in panel.get_title()
        figure.draw_without_rendering()
        boxes = sorted((text.get_window_extent() for text in panel.texts), key=lambda box: box.y0)
        assert all(upper.y0 >= lower.y0 + 0.8 * lower.height for lower, upper in itertools.pairwise(boxes))
