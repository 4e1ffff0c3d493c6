"""The example service over loopback: many clients, feedback late, lost, doubled and out of order, the process killed: nothing is lost."""

import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

FOLDER = Path(__file__).parents[2] / "experiments" / "live_service"


class Service:
    """The service as a process that can be killed and started again on the same port."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.environment = {**os.environ, "CAMPAIGN": str(folder / "campaign.db")}
        self.process = None

    def start(self):
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "uvicorn",
            "service:app",
            "--port",
            str(self.port),
            "--log-level",
            "error",
        ]
        self.process = subprocess.Popen(command, cwd=FOLDER, env=self.environment)
        for _ in range(1200):
            if self.call("/status") is not None:
                return
            assert self.process.poll() is None, "the service has ended by itself"
            time.sleep(0.05)
        raise AssertionError("the service does not answer")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def call(self, path, body=None):
        """The answer and its status; None if there was none."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, {"content-type": "application/json"})
        try:
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as error:
                return error.code, error.read()
        except (OSError, http.client.HTTPException):  # no connection, or one that ended in the middle of an answer
            return None


def client(service, number, stop, decided, fed, refused, ended):
    """Acts, and hands in feedback late, in any order, now and then twice, and not at all for one in ten."""
    random, held = np.random.default_rng(number), []
    while not stop.is_set() or held:
        if not stop.is_set():
            answer = service.call("/act", {})
            if answer is not None and answer[0] == 200:
                ticket = json.loads(answer[1])
                decided.append((ticket["ticket"], ticket["arm"], ticket["probability"]))
                if random.uniform() > 0.1:
                    held.append(ticket["ticket"])
        if held and (stop.is_set() or random.uniform() < 0.8):
            ticket = held.pop(random.integers(len(held)))
            for attempt in range(1 + (random.uniform() < 0.2)):
                answer = None
                while answer is None:  # the service may be dead: try again, as a client would
                    answer = service.call("/feedback", {"ticket": ticket, "reward": float(random.integers(2))})
                    if answer is None:
                        time.sleep(0.02)
                if answer[0] == 200:
                    fed.append(ticket)
                else:  # already in: doubled, or committed just before a kill
                    refused.append((answer[0], answer[1].decode(), attempt))
    ended.append(number)


@pytest.mark.parametrize(
    ("clients", "kills"), [pytest.param(4, 2, marks=pytest.mark.thorough), pytest.param(20, 10, marks=pytest.mark.slow)]
)
def test_nothing_is_lost(tmp_path, clients, kills):
    service, stop = Service(tmp_path), threading.Event()
    decided, fed, refused, ended = [], [], [], []
    service.start()
    threads = [threading.Thread(target=client, args=(service, i, stop, decided, fed, refused, ended)) for i in range(clients)]
    for thread in threads:
        thread.start()

    def at_work():
        """For a while, and until enough was answered, however slow the machine is."""
        wanted, until = len(decided) + 21, time.monotonic() + 120
        time.sleep(1.0)
        while len(decided) < wanted and time.monotonic() < until:
            time.sleep(0.01)

    try:
        for _ in range(kills):
            at_work()
            service.kill()
            service.start()
        at_work()
    finally:
        stop.set()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert sorted(ended) == list(range(clients))  # none of them gave up
    status = json.loads(service.call("/status")[1])
    page = service.call("/")
    service.kill()

    assert page[0] == 200
    assert b"Live bandit" in page[1]
    database = sqlite3.connect(tmp_path / "campaign.db")
    on_disk = {row[0]: row for row in database.execute("SELECT id, arm, probability FROM decision")}
    feedback = {row[0] for row in database.execute("SELECT ticket FROM feedback")}
    database.close()
    arms = ["red", "green", "blue"]
    assert len(decided) > 20 * kills
    assert len({ticket for ticket, *_ in decided}) == len(decided)  # no ticket was given out twice
    for ticket, arm, probability in decided:
        assert on_disk[ticket][1:] == (arms.index(arm), probability)
    assert set(fed) <= feedback
    assert len(set(fed)) == len(fed)  # each was accepted once
    assert all(code == 409 and "its feedback is already in" in text for code, text, _ in refused)
    assert any(attempt == 1 for *_, attempt in refused)
    assert status["rounds"] == len(on_disk)
    assert status["outstanding"] == len(on_disk) - len(feedback)


def test_wrong_calls(tmp_path):
    service = Service(tmp_path)
    service.start()
    try:
        assert service.call("/feedback", {"ticket": 5, "reward": 1})[0] == 409
        ticket = json.loads(service.call("/act", {})[1])["ticket"]
        assert service.call("/feedback", {"ticket": ticket, "reward": 7})[0] == 422
        assert service.call("/feedback", {"ticket": ticket})[0] == 422
        assert service.call("/feedback", {"ticket": "one"})[0] == 422
        assert json.loads(service.call("/status")[1])["outstanding"] == 1
        assert service.call("/feedback", {"ticket": ticket, "expired": True})[0] == 200
        status = json.loads(service.call("/status")[1])
        assert (status["rounds"], status["outstanding"], status["answered"], status["oldest"]) == (1, 0, 1, None)
        assert sum(status["probabilities"].values()) == pytest.approx(1, abs=1e-6)
    finally:
        service.kill()


def test_what_the_status_shows(tmp_path):
    """Counts and intervals by arm against SciPy and the caller's own notes, keys, health, and a history that survives a kill."""
    service, random, shown = Service(tmp_path), np.random.default_rng(0), {}
    service.start()
    try:
        assert json.loads(service.call("/history")[1]) == {"time": [], "decisions": [], "outstanding": []}
        assert json.loads(service.call("/health")[1]) == {"healthy": True, "rounds": 0}
        first = json.loads(service.call("/act", {"key": "request 1"})[1])
        assert json.loads(service.call("/act", {"key": "request 1"})[1]) == first
        assert service.call("/act", {"key": ""})[0] == 422
        for _ in range(30):
            ticket = json.loads(service.call("/act", {})[1])
            reward = int(random.uniform() < 0.4)
            shown.setdefault(ticket["arm"], []).append(reward)
            service.call("/feedback", {"ticket": ticket["ticket"], "reward": reward})
        before = json.loads(service.call("/status")[1])
        history = json.loads(service.call("/history")[1])
        service.kill()
        service.start()
        after = json.loads(service.call("/status")[1])
        assert 0 < before.pop("oldest") < after.pop("oldest") < 600
        assert after == before
        for one in after["arms"]:
            rewards = shown.get(one["arm"], [])
            assert one["observed"] == len(rewards)
            assert one["shown"] == len(rewards) + (one["arm"] == first["arm"])
            if rewards:
                interval = scipy.stats.binomtest(sum(rewards), len(rewards)).proportion_ci(method="wilson")
                assert one["reward"] == pytest.approx(np.mean(rewards))
                assert (one["low"], one["high"]) == pytest.approx(interval, abs=1e-4)
        later = json.loads(service.call("/history")[1])
        for one in (history, later):
            assert len(one["time"]) == len(one["decisions"]) == 120
            assert (one["decisions"][-1], one["outstanding"][-1]) == (31, 1)
            assert sorted(one["decisions"]) == one["decisions"]
        assert later["time"][0] >= history["time"][0]
        assert service.call("/health")[0] == 200
        (tmp_path / "campaign.db").rename(tmp_path / "moved.db")
        assert service.call("/health")[0] == 503
    finally:
        service.kill()


# A browser that asks nobody for anything.
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"]


@pytest.fixture
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        try:
            browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        except sync_api.Error:
            pytest.skip("there is no Chromium here: apt-get install chromium, or playwright install chromium")
        yield browser
        browser.close()


def test_the_page_in_a_browser(tmp_path, browser):
    """It shows what /status says, while feedback comes, while the service is away and after it is back; no script fails."""
    service = Service(tmp_path)
    service.start()
    try:
        service.call("/feedback", {"ticket": json.loads(service.call("/act", {})[1])["ticket"], "reward": 1})
        page = browser.new_page()
        faults = []
        page.on("pageerror", lambda fault: faults.append(str(fault)))
        page.goto(f"http://127.0.0.1:{service.port}/")
        page.wait_for_function("document.getElementById('rounds').textContent === '1'")
        assert page.locator("#answered").inner_text() == "1"
        assert page.locator("#oldest").inner_text() == "–"
        assert page.locator("#arms tr").count() == 3
        for _ in range(5):
            service.call("/act", {})
        page.wait_for_function("document.getElementById('outstanding').textContent === '5'")
        assert page.locator("#oldest").inner_text().endswith((" s", " min"))
        status = json.loads(service.call("/status")[1])
        for number, one in enumerate(status["arms"]):
            cells = page.locator("#arms tr").nth(number).locator("th, td").all_inner_texts()
            mean = "–" if one["reward"] is None else f"{one['reward']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"
            assert [cells[0], cells[3], cells[4], cells[5]] == [one["arm"], str(one["shown"]), str(one["observed"]), mean]
            assert float(cells[1]) == round(status["probabilities"][one["arm"]], 3)
        widths = page.locator("#arms .track div").evaluate_all("bars => bars.map(bar => parseFloat(bar.style.width))")[::2]
        np.testing.assert_allclose(widths, [100 * x for x in status["probabilities"].values()], atol=0.01)
        points = page.locator("#line").get_attribute("points").split()
        heights = [float(point.split(",")[1]) for point in points]
        assert heights[0] > heights[-1] == 2  # few outstanding observations first, the most last, at the top
        page.reload()  # the chart keeps its history
        page.wait_for_function("document.getElementById('line').getAttribute('points')?.split(' ').length === 120")
        again = [float(point.split(",")[1]) for point in page.locator("#line").get_attribute("points").split()]
        assert again[0] > again[-1] == 2
        service.kill()
        page.wait_for_function("document.getElementById('fault').textContent.includes('does not answer')")
        service.start()
        page.wait_for_function("document.getElementById('fault').textContent === ''")
        assert page.locator("#rounds").inner_text() == "6"
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert faults == []
    finally:
        service.kill()
