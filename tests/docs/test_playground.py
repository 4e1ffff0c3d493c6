"""The playground in a browser: each mode is played, and its numbers agree with the library's."""

import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import jax
import numpy as np
import pytest

import jaxbandit as jb
from experiments.playground import search

FOLDER = Path(__file__).parents[2] / "docs" / "playground"
pytestmark = pytest.mark.slow
PAGE = (FOLDER / "index.html").as_uri()


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
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    wrong = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on(
        "request", lambda request: wrong.append(request.url) if not request.url.startswith(("file:", "blob:", "data:")) else None
    )
    yield opened
    opened.close()
    assert wrong == []  # no error, and no request to a server


def visit(page, **settings):
    page.goto("about:blank")  # a new address of the same page would only change its fragment
    page.goto(f"{PAGE}#{urlencode(settings)}")


def show(page, **settings):
    visit(page, **settings)
    return shown(page)


def shown(page, table="table", key="learner"):
    page.wait_for_selector("body[data-done=true]", timeout=120_000)
    rows = page.eval_on_selector_all(f"#{table} tr", "rows => rows.map(row => ({...row.dataset}))")
    return {row[key]: (float(row["mean"]), float(row["error"])) for row in rows}


def assert_agree(there, result, name):
    """The page's mean and standard error against a result of the library: five standard errors, and 0.1% for float32."""
    here, (mean, error) = result.estimate(), there
    assert abs(mean - here.mean[-1]) < 5 * np.hypot(error, here.error[-1]) + 1e-3 * abs(here.mean[-1]), name


def losses(s):
    if s["losses"] == "stochastic":
        return jb.losses.Bernoulli([(1 - s["gap"]) / 2, *[(1 + s["gap"]) / 2] * (s["K"] - 1)])
    if s["losses"] == "constrained":
        return jb.losses.StochasticallyConstrained(s["gap"], s["K"])
    return jb.losses.DelayMatchedSwitching(s["delay"], s["K"])


def delays(s):
    if s["law"] == "missing":
        return jb.delays.PacketLoss(0.7, delay=s["delay"])
    return jb.delays.Fixed(s["delay"]) if s["law"] == "fixed" else jb.delays.Geometric(float(s["delay"]), bound=8 * s["delay"])


def learners(longest):
    return search.learners() | {
        "bobw": jb.BestOfBothWorlds(max_delay=longest),
        "bobw-1-1": jb.BestOfBothWorlds(max_delay=longest, linear=1.0, factor=1.0),
    }


SETTINGS = [
    {"K": 5, "gap": 0.2, "delay": 10, "law": "fixed", "losses": "stochastic", "rounds": 5000},
    {"K": 3, "gap": 0.3, "delay": 20, "law": "geometric", "losses": "stochastic", "rounds": 5000},
    {"K": 4, "gap": 0.2, "delay": 50, "law": "fixed", "losses": "switching", "rounds": 1000},
    {"K": 5, "gap": 0.2, "delay": 10, "law": "fixed", "losses": "constrained", "rounds": 5000},
    {"K": 5, "gap": 0.2, "delay": 10, "law": "missing", "losses": "stochastic", "rounds": 1000},
]


@pytest.mark.parametrize("s", SETTINGS, ids=lambda s: f"{s['losses']}-{s['law']}")
def test_its_regret_is_the_library_s(page, s):
    those = learners(8 * s["delay"] if s["law"] == "geometric" else s["delay"])
    there = show(page, **s, learners=",".join(those))
    assert there.keys() == those.keys()
    for name, learner in those.items():
        result = jb.simulate(learner, losses(s), delays(s), rounds=s["rounds"], runs=1024, key=jax.random.key(1), record=1)
        assert_agree(there[name], result, name)
        assert there[name][1] < 0.15 * there[name][0]  # enough runs for the comparison to mean something


def test_links_of_earlier_versions(page):
    there = show(page, K=4, delay=50, losses="adversarial", rounds=1000, learners="tsallis,lowered")
    assert there.keys() == {"tsallis-inf", "bobw-1-1"}
    assert "losses=switching" in page.url


def test_the_strip_shows_what_is_outstanding(page):
    """Every dot lands after its delay, and the heap is σ_t; fixed delays exactly, missing feedback by its expectation."""
    for law in ("fixed", "geometric", "missing"):
        visit(page, mode="watch", K=3, delay=20, law=law, algorithm="thompson")
        page.evaluate("() => { setPlaying(false); advanceWatch(1500); drawWatch(); }")
        events = page.evaluate("watch.events.map(e => ({ arm: e.arm, delay: e.delay, outstanding: e.outstanding, x: [...e.x] }))")
        waits = np.array([event["delay"] if event["delay"] >= 0 else 10**6 for event in events])
        sent = np.arange(1, len(waits) + 1)
        expected = [int(np.sum((sent < t) & (sent + waits >= t))) for t in sent]
        assert [event["outstanding"] for event in events] == expected
        assert all(abs(sum(event["x"]) - 1) < 1e-9 for event in events)
        assert all(event["x"][event["arm"]] == 1 for event in events)  # Thompson sampling draws before it acts
        if law == "fixed":
            assert expected == list(np.minimum(sent - 1, 20))
        else:
            missing = 1 - 0.7 if law == "missing" else (20 / 21) ** 161
            count = len(waits)
            assert abs(np.sum(waits == 10**6) - missing * count) < 5 * np.sqrt(missing * count) + 1
        assert page.evaluate("watch.events.filter((_, i) => isOutstanding(watch.events, i + 1, 1000)).length") == expected[999]
        page.click("#step")
        assert page.evaluate("watch.events.length") == len(events) + 1


def test_the_strip_plays_by_itself_and_pauses(page):
    visit(page, mode="watch", delay=10)
    page.wait_for_function("watch.events.length > 5")
    page.click("#play")
    before = page.evaluate("watch.now")
    page.wait_for_timeout(200)
    assert page.evaluate("watch.now") == before
    assert page.inner_text("#play") == "Play"


def test_presets(page):
    visit(page, mode="compare", learners="uniform")
    for name, wanted in {
        "Stochastic": ("stochastic", "fixed"),
        "Stochastically constrained": ("constrained", "fixed"),
        "Delay-matched switching": ("switching", "fixed"),
        "Missing feedback": ("stochastic", "missing"),
    }.items():
        page.click(f"#presets button:text-is('{name}')")
        assert (page.input_value("#losses"), page.input_value("#law")) == wanted
        pressed = page.eval_on_selector_all("#presets [aria-pressed=true]", "all => all.map(one => one.textContent)")
        assert pressed == [name]


def table_of(good):
    return jb.losses.Table(1.0 - np.eye(2)[np.array(good)])


@pytest.mark.parametrize("name", ["tsallis-inf", "thompson", "ucb1", "bobw-1-1"])
def test_the_adversary_draws_a_sequence(page, name):
    visit(page, mode="adversary", algorithm=name)
    page.wait_for_selector("body[data-done=true]")
    box = page.locator("#duel").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 100)  # the lower lane
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 100, steps=5)
    page.mouse.up()
    there = shown(page, "duel-table", "row")
    good = page.evaluate("[...duel.good]")
    assert 0 < sum(good) < len(good)
    assert np.sum(np.diff(good) != 0) == 2  # one stroke
    learner, fixed = search.learners()[name], jb.delays.Fixed(search.DELAY)
    result = jb.simulate(learner, table_of(good), fixed, rounds=search.ROUNDS, runs=2048, seed=3, record=1)
    assert_agree(there["yours"], result, "yours")
    matched = jb.losses.DelayMatchedSwitching(search.DELAY, 2)
    result = jb.simulate(learner, matched, fixed, rounds=search.ROUNDS, runs=2048, seed=3, record=1)
    assert_agree(there["matched"], result, "matched")
    page.click("#searched")
    there = shown(page, "duel-table", "row")
    (mine, error), (searched, other) = there["yours"], there["searched"]
    assert abs(mine - searched) < 5 * np.hypot(error, other)


def test_the_adversary_plays_live(page):
    """Arrow keys choose the good arm while the rounds pass; the run is that of the finished sequence."""
    visit(page, mode="adversary", algorithm="ucb1")
    page.click("#live")
    page.wait_for_function("duel.events.length > 60")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("duel.events.length > 120")
    page.keyboard.press("ArrowUp")
    page.wait_for_function("duel.events.length > 150")
    live = page.evaluate("duel.events.slice(0, 150).map(e => [...e.x])")
    page.wait_for_function("!duel.live", timeout=60_000)
    there = shown(page, "duel-table", "row")
    good = page.evaluate("[...duel.good]")
    assert 20 < sum(good) < 120
    assert np.sum(np.diff(good) != 0) == 2
    assert page.evaluate("duel.events.slice(0, 150).map(e => [...e.x])") == live  # it was played against what was drawn
    result = jb.simulate(jb.DelayedUCB1(), table_of(good), jb.delays.Fixed(20), rounds=300, runs=2048, seed=3, record=1)
    assert_agree(there["yours"], result, "live")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    assert shown(page, "duel-table", "row")["yours"] == there["yours"]


def test_the_learner_plays_sixty_rounds(page):
    """Feedback is shown ten rounds after its action and not before; the regrets are exact, or the library's."""
    visit(page, mode="learner", seed=7)
    means = np.array(page.evaluate("hand.s.means"))
    assert sorted(means) == [0.2, 0.5, 0.6, 0.7]
    chosen = [round % 4 if round < 12 else 2 for round in range(60)]
    for round, arm in enumerate(chosen, 1):
        page.keyboard.press(str(arm + 1)) if round % 2 else page.click(f"#pulls button:nth-child({arm + 1})")
        if round in (5, 10, 11, 30):
            page.wait_for_timeout(50)
            seen = np.sum(
                [[int(n) for n in re.findall(r"(\d+) ×", text)] for text in page.locator("#pulls span").all_inner_texts()]
            )
            assert seen == max(0, round - 10)
            said = page.inner_text("#hand-status")
            assert (f"Feedback of round {round - 10} arrived: arm {chosen[round - 11] + 1}" in said) == (round > 10)
    there = shown(page, "hand-table")
    assert there.pop("you")[0] == pytest.approx(np.sum(means[chosen] - means.min()))
    assert there.keys() == {"tsallis-inf", "ucb1", "thompson"}
    for name, row in there.items():
        result = jb.simulate(
            search.learners()[name], jb.losses.Bernoulli(means), jb.delays.Fixed(10), rounds=60, runs=4096, seed=4, record=1
        )
        assert_agree(row, result, name)
    page.keyboard.press("1")  # the game is over
    assert page.evaluate("hand.events.length") == 60


@pytest.mark.parametrize(
    ("settings", "table", "key"),
    [
        ({"mode": "compare", "learners": ",".join(search.learners()), "rounds": 1000, "log": 1}, "table", "learner"),
        (
            {"mode": "compare", "learners": "bobw,ucb1", "law": "geometric", "losses": "constrained", "rounds": 1000},
            "table",
            "learner",
        ),
        (
            {"mode": "compare", "learners": "thompson", "law": "missing", "losses": "switching", "rounds": 1000},
            "table",
            "learner",
        ),
        ({"mode": "watch", "algorithm": "zimmert-seldin"}, None, None),
        ({"mode": "adversary", "algorithm": "tsallis-inf", "switches": "50,90,200"}, "duel-table", "row"),
        ({"mode": "learner", "seed": 7}, None, None),
    ],
    ids=lambda value: value["mode"] if isinstance(value, dict) else "",
)
def test_the_program_it_copies_runs_as_pasted(page, settings, table, key, tmp_path, monkeypatch, capsys):
    visit(page, **settings)
    there = shown(page, table, key) if table else {}
    page.click("#copy-python")
    page.wait_for_function("document.getElementById('said').textContent === 'Program copied.'")
    program = page.evaluate("navigator.clipboard.readText()")
    monkeypatch.chdir(tmp_path)
    namespace = {}
    exec(program, namespace)
    results = namespace["results"]
    printed = capsys.readouterr().out
    assert all(name in printed for name in results)
    assert [file.suffix for file in tmp_path.iterdir()] == [".png"]
    keys = {style.name: key for key, style in jb.plots.ALGORITHMS.items()}
    for name, result in results.items():
        if there:
            assert_agree(there["yours" if key == "row" else keys[name]], result, name)
    if settings["mode"] == "compare":
        assert len(results) == len(there)
        assert ('log="x"' in program) == ("log" in settings)


def test_the_link_keeps_everything(page):
    show(page, mode="compare", K=3, gap=0.3, delay=5, law="missing", losses="constrained", rounds=1000, learners="ucb1")
    page.check("#log")
    page.click("#copy-link")
    page.wait_for_function("document.getElementById('said').textContent === 'Link copied.'")
    link = page.evaluate("navigator.clipboard.readText()")
    given = {name: values[0] for name, values in parse_qs(link.partition("#")[2]).items()}
    wanted = {"mode": "compare", "K": "3", "gap": "0.3", "delay": "5", "law": "missing", "losses": "constrained"}
    assert given == wanted | {"rounds": "1000", "learners": "ucb1", "log": "1"}
    page.goto("about:blank")
    page.goto(link)
    shown(page)
    assert page.is_checked("#log")


@pytest.mark.parametrize("mode", ["watch", "compare", "adversary", "learner"])
def test_the_picture_can_be_downloaded(page, mode, tmp_path):
    from PIL import Image

    visit(page, mode=mode, rounds=1000, learners="uniform,ucb1")
    if mode == "learner":
        for _ in range(60):
            page.keyboard.press("1")
    if mode != "watch":
        page.wait_for_selector("body[data-done=true]")
    with page.expect_download() as waiting:
        page.click("#download")
    waiting.value.save_as(tmp_path / "picture.png")
    assert waiting.value.suggested_filename == f"jaxbandit-{mode}.png"
    with Image.open(tmp_path / "picture.png") as image:
        assert image.width >= 600
        assert len(image.convert("RGB").getcolors(1 << 24)) > 10  # not an empty sheet


def test_the_keyboard_is_enough(page):
    before = show(page, mode="compare", K=5, gap=0.2, delay=10, law="fixed", rounds=1000, learners="tsallis-inf")
    page.focus("#presets button:last-child")
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "gap":
            break
    assert page.evaluate("document.activeElement.id") == "gap"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("ArrowRight")
    assert page.input_value("#gap") == "0.25"
    page.wait_for_function("location.hash.includes('gap=0.25')")
    assert shown(page)["tsallis-inf"] != before["tsallis-inf"]
    page.focus("#learner-uniform")
    page.keyboard.press("Space")
    page.wait_for_selector("[data-learner=uniform]", state="attached")
    assert shown(page)["uniform"][0] == pytest.approx(0.25 * 0.8 * 1000)
    page.focus("#tab-compare")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute("body", "data-mode") == "adversary"


@pytest.mark.parametrize("mode", ["watch", "compare", "adversary", "learner"])
@pytest.mark.parametrize("width", [400, 1400])
def test_it_fits_the_screen_and_every_control_has_a_name(page, width, mode):
    page.set_viewport_size({"width": width, "height": 740})
    visit(page, mode=mode, rounds=1000, learners="tsallis-inf,uniform,thompson")
    if mode == "learner":
        for _ in range(60):
            page.keyboard.press("1")
    if mode != "watch":
        page.wait_for_selector("body[data-done=true]")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    clipped = page.evaluate(
        """() => [...document.querySelectorAll('svg.chart')].flatMap(chart => { const box = chart.getBoundingClientRect();
        return [...chart.querySelectorAll('text')].filter(text => { const own = text.getBoundingClientRect();
            return own.left < box.left - 1 || own.right > box.right + 1; }).map(text => text.textContent); })"""
    )
    assert clipped == []
    if mode == "compare":
        assert len(page.get_attribute("#chart polyline", "points").split()) > 50
    controls = "[...document.querySelectorAll('input, select, button, canvas')]"
    nameless = page.evaluate(f"{controls}.filter(e => !e.labels?.length && !e.textContent && !e.ariaLabel).map(e => e.id)")
    assert nameless == []
    assert page.get_attribute("#docs", "href").startswith("../index.")


def test_a_wrong_address_does_not_break_it(page):
    assert show(page, K=999, law="none", rounds="many", learners="nobody", log="?", seed="x") == {}
    assert page.inner_text("#status") == "Choose an algorithm."
    visit(page, mode="adversary", algorithm="nobody", switches="-3,1e9,x")
    assert shown(page, "duel-table", "row").keys() == {"yours", "matched", "searched"}
    visit(page, mode="nowhere")
    assert page.get_attribute("body", "data-mode") == "watch"
