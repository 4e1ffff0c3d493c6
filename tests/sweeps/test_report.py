"""The report: its statistics against independent ones, and what a reader must find in it."""

import dataclasses
import html.parser
import shutil
import subprocess

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import plots
from jaxbandit._core.display import number
from jaxbandit.sweeps import report
from jaxbandit.sweeps.comparison import differences, environments, proved_bound
from jaxbandit.sweeps.plan import Plan
from jaxbandit.sweeps.store import Store
from jaxbandit.sweeps.summary import in_words, wins


@pytest.mark.thorough
def test_bounds_lie_above_the_regret():
    spec = jb.Spec(
        2000, 64, [jb.BestOfBothWorlds("oracle"), jb.DelayedExp3()], [jb.losses.Bernoulli([0.3, 0.5, 0.5])], [jb.delays.Fixed(4)]
    )
    for cell in Plan.make(spec).cells:
        result = jb.simulate(cell.learner, cell.losses, cell.delays, rounds=2000, runs=64, key=jax.random.key(0))
        bound = proved_bound(cell, result.rounds)
        assert bound is not None
        assert bound.source
        assert np.all(bound.values >= result.regret.mean(1))
        assert bound.values[-1] < 40 * result.regret[-1].mean()


class _Outline(html.parser.HTMLParser):
    """Tags that are never closed, and everything that would be fetched."""

    def __init__(self):
        super().__init__()
        self.open, self.fetched = [], []

    def handle_starttag(self, tag, attrs):
        self.fetched += [value for name, value in attrs if name in ("src", "href") and not value.startswith("#")]
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report of a spec whose labels try to be code, of a page and of a figure."""
    out = tmp_path_factory.mktemp("report")
    evil = "<script>alert(1)</script>"
    spec = jb.Spec(
        rounds=300,
        runs=40,
        learners=[jb.Entry("delayed-exp3", label=evil), jb.Entry("uniform"), jb.Entry("uniform", label=r"$\frac$ again")],
        losses=[jb.losses.Bernoulli([0.1, 0.9, 0.9])],
        delays=[jb.delays.Fixed(3)],
    )
    jb.sweep(spec, out / "sweep")
    return report.write_report(out / "sweep", title="How it went <b>", text="First $\\frac$.\n\nSecond & last.")


def test_page(page):
    text = page.read_text()
    outline = _Outline()
    outline.feed(text)
    assert not outline.open
    assert not outline.fetched
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    data = jb.open_sweep(page.parents[1])
    for mean in data.regret.isel(round=-1).mean("run").values.ravel():
        assert f"<td>{number(mean)} <small>" in text
    assert "upper bounds with proved constants" in text
    assert "<th>median</th><th>95th percentile</th><th>failed runs</th>" in text
    assert "<title>How it went &lt;b&gt;</title>" in text
    assert "<p>First $\\frac$.</p><p>Second &amp; last.</p>" in text
    assert "threefry2x32" in text
    assert (page.parent / "losses0_delays0.png").stat().st_size > 10_000


def test_nothing_of_a_manifest_is_believed(page, tmp_path, monkeypatch):
    """Whatever a stranger writes into a manifest comes out as text."""
    store, evil = Store.open(page.parents[1]), "</p><script>alert(2)</script>"
    store.manifest["seed"] = evil
    store.manifest["environments"] = [{evil: evil}]
    for axis in ("learners", "losses", "delays"):
        for place, setting in enumerate(store.manifest["axes"][axis]):
            setting["label"] = f"{evil}{place}"
            setting["about"] = {"name": evil, evil: [evil]}
    monkeypatch.setattr(Store, "open", lambda _: store)
    text = report.write_report(tmp_path, tmp_path).read_text()
    assert "<script" not in text
    assert text.count("&lt;script&gt;alert(2)") >= 10


@pytest.fixture(scope="module")
def varied(tmp_path_factory):
    """Three delays, a learner that is best with each of them, and a title and text in the spec."""
    out = tmp_path_factory.mktemp("varied")
    spec = jb.Spec(
        rounds=200, runs=40, learners={"coin": jb.Uniform(), "Tsallis": jb.TsallisINF()}, losses=[jb.losses.Bernoulli([0.1, 0.9])],
        delays=[jb.delays.Fixed(wait) for wait in (1, 2, 40)], title="Mine", text="Said in the spec.",
    )  # fmt: skip
    jb.sweep(spec, out)
    return out


@pytest.mark.thorough
def test_the_summary_says_who_wins_where_and_by_how_much(varied):
    text = report.write_report(varied).read_text()
    last = jb.open_sweep(varied).regret.isel(round=-1, losses=0).values  # learner, delays, run
    means = last.mean(-1)
    assert (means[1] < means[0]).all()
    ratios = means[0] / means[1]
    assert "<h1>Mine</h1><p>Said in the spec.</p>" in text
    assert "<b>Tsallis</b> has the lowest regret in 3 of 3 environments, significantly in 3 of them." in text
    assert f"The second-lowest regret is {ratios.min():.3g} to {ratios.max():.3g} times as large." in text
    assert "Lowest in no environment: coin." in text
    assert "regret against delay in rounds" in text
    for delay in range(3):
        assert f"<td>{number(np.median(last[1, delay]))}</td><td>{number(np.quantile(last[1, delay], 0.95))}</td>" in text
    assert "per round; at most" in text


@pytest.mark.thorough
def test_a_win_that_is_chance_is_not_called_clear(varied):
    games = environments(Store.open(varied))[:1]
    uniform = games[0].results["coin"]
    noise = np.random.default_rng(0).normal(size=uniform.regret.shape)
    close = dataclasses.replace(
        games[0], results={"a": uniform, "b": dataclasses.replace(uniform, regret=uniform.regret + noise)}
    )
    (win,) = wins([close], differences([close]))
    assert not win.clear
    assert "not significant" in in_words([close], [win], ["a", "b"])


@pytest.mark.thorough
def test_many_games_are_folded_and_need_few_figures(tmp_path, monkeypatch):
    """Rejects a figure of matplotlib for each game: with some fifty games that took minutes."""
    spec = jb.Spec(
        rounds=20, runs=4, learners=[jb.Uniform()], losses=[jb.losses.Bernoulli([0.1, 0.9])],
        delays=[jb.delays.Fixed(wait) for wait in range(9)],
    )  # fmt: skip
    jb.sweep(spec, tmp_path)
    made, figure = [], plots.figure
    monkeypatch.setattr(plots, "figure", lambda *sizes, **more: made.append(sizes) or figure(*sizes, **more))
    text = report.write_report(tmp_path).read_text()
    assert not made  # regret against the delay is drawn by plots.against, and nothing else
    assert [path.name for path in (tmp_path / "report").glob("*.png")] == ["against_delays_delay.png"]
    assert text.count('<summary class="game">') == 9
    assert text.count('<svg role="img" class="chart linear"') == text.count('<svg role="img" class="chart log"') == 9
    assert text.count('<details open><summary class="game">') == 1


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser")
@pytest.mark.parametrize("width", [390, 1280])
def test_page_fits_the_window_of_a_real_browser(page, tmp_path, width):
    """Nothing sticks out sideways, on a phone or on a screen."""
    script = "<script>parent.postMessage(document.documentElement.scrollWidth, '*')</script></body>"
    (tmp_path / "inside.html").write_text(page.read_text().replace("</body>", script))
    (tmp_path / "window.html").write_text(
        "<title>none</title><script>onmessage = message => document.title = message.data</script>"
        f'<iframe style="width:{width}px;height:800px;border:0" src="inside.html"></iframe>'
    )
    line = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900", "--virtual-time-budget=3000"]
    dom = subprocess.run(
        [*line, "--dump-dom", str(tmp_path / "window.html")], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(dom.stdout.split("<title>")[1].split("</title>")[0]) <= width
