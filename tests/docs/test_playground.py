"""The playground in a real browser: its numbers against the library's, by keyboard, and on a narrow screen."""

import shutil
from pathlib import Path
from urllib.parse import urlencode

import jax
import numpy as np
import pytest

import jaxbandit as jb

pytestmark = pytest.mark.slow
PAGE = (Path(__file__).parents[2] / "docs" / "playground" / "index.html").as_uri()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    found = next((shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome") if shutil.which(name)), None)
    with playwright.sync_playwright() as driver:
        try:
            started = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no Chromium to start: {str(error).splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture
def page(browser):
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    wrong = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on(
        "request", lambda request: wrong.append(request.url) if not request.url.startswith(("file:", "blob:", "data:")) else None
    )
    yield opened
    opened.close()
    assert wrong == []  # no error, and nothing asked of any server


def show(page, **settings):
    page.goto("about:blank")  # a new address of the same page would only change its fragment
    page.goto(f"{PAGE}#{urlencode(settings)}")
    return shown(page)


def shown(page):
    page.wait_for_selector("body[data-done=true]", timeout=120_000)
    rows = page.eval_on_selector_all("#table tr", "rows => rows.map(row => ({...row.dataset}))")
    return {row["learner"]: (float(row["mean"]), float(row["error"])) for row in rows}


def losses(s):
    if s["losses"] == "stochastic":
        return jb.losses.Bernoulli([(1 - s["gap"]) / 2, *[(1 + s["gap"]) / 2] * (s["K"] - 1)])
    return jb.losses.DelayMatchedSwitching(s["delay"], s["K"])


SETTINGS = [
    {"K": 5, "gap": 0.2, "delay": 10, "law": "fixed", "losses": "stochastic", "rounds": 5000},
    {"K": 3, "gap": 0.3, "delay": 20, "law": "geometric", "losses": "stochastic", "rounds": 5000},
    {"K": 4, "gap": 0.2, "delay": 50, "law": "fixed", "losses": "adversarial", "rounds": 1000},
]


@pytest.mark.parametrize("s", SETTINGS, ids=lambda s: f"{s['losses']}-{s['law']}")
def test_its_regret_is_the_library_s(page, s):
    longest = s["delay"] if s["law"] == "fixed" else 8 * s["delay"]
    delays = jb.delays.Fixed(s["delay"]) if s["law"] == "fixed" else jb.delays.Geometric(float(s["delay"]), bound=longest)
    learners = {
        "paper": jb.BestOfBothWorlds(max_delay=longest),
        "lowered": jb.BestOfBothWorlds(max_delay=longest, linear=1.0, factor=1.0),
        "zs20": jb.ZimmertSeldin(),
        "exp3": jb.DelayedExp3(),
        "tsallis": jb.TsallisINF(),
        "ucb1": jb.DelayedUCB1(),
        "uniform": jb.Uniform(),
    }
    there = show(page, **s, learners=",".join(learners))
    assert there.keys() == learners.keys()
    for name, learner in learners.items():
        result = jb.simulate(learner, losses(s), delays, rounds=s["rounds"], runs=1024, key=jax.random.key(1), record=1)
        here = result.estimate()
        mean, error = there[name]
        assert abs(mean - here.mean[-1]) < 5 * np.hypot(error, here.error[-1]) + 1e-3 * here.mean[-1], name
        assert error < 0.1 * mean  # enough runs for the comparison to mean something


def test_the_keyboard_is_enough(page):
    before = show(page, K=5, gap=0.2, delay=10, law="fixed", rounds=1000, learners="tsallis")
    page.keyboard.press("Tab")  # what to look for
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "gap":
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("ArrowRight")
    assert page.input_value("#gap") == "0.25"
    page.wait_for_selector("body[data-done=false]")
    assert shown(page)["tsallis"] != before["tsallis"]
    assert "gap=0.25" in page.url
    page.focus("#learner-uniform")
    page.keyboard.press("Space")
    page.wait_for_selector("[data-learner=uniform]", state="attached")
    assert shown(page)["uniform"][0] == pytest.approx(0.25 * 0.8 * 1000)


def test_every_control_has_a_name(page):
    show(page, rounds=1000, learners="tsallis")
    nameless = page.evaluate("[...document.querySelectorAll('input, select')].filter(e => !e.labels.length).map(e => e.id)")
    assert nameless == []


@pytest.mark.parametrize("width", [360, 1280])
def test_it_fits_the_screen(page, width):
    page.set_viewport_size({"width": width, "height": 740})
    show(page, rounds=1000, learners="tsallis,uniform")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    clipped = page.evaluate(
        """() => { const box = document.getElementById('chart').getBoundingClientRect();
        return [...document.querySelectorAll('#chart text')].filter(text => { const own = text.getBoundingClientRect();
            return own.left < box.left - 1 || own.right > box.right + 1; }).map(text => text.textContent); }"""
    )
    assert clipped == []
    curve = page.get_attribute("#chart polyline", "points").split()
    assert len(curve) > 50


def test_a_wrong_address_does_not_break_it(page):
    assert show(page, K=999, law="none", rounds="many", learners="nobody") == {}
    assert page.inner_text("#status") == "Choose a learner."
