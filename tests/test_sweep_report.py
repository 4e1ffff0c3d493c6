"""The report: its statistics against independent ones, and what a reader must find in it."""

import html.parser
import shutil
import subprocess

import jax
import mpmath
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import report
from jaxbandit.sweep.plan import Plan


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 30, 255, 1023])
def test_student_p_against_mpmath(freedom):
    for t in (0.0, 0.3, 1.0, 2.5, 4.0, -3.0):
        exact = mpmath.betainc(freedom / 2, 0.5, 0, freedom / (freedom + t * t), regularized=True)
        assert report.student_p(t, freedom) == pytest.approx(float(exact), rel=1e-9, abs=1e-13)


def test_holm_against_its_definition():
    values = [0.001, 0.2, 0.04, 0.01, 0.01, 0.9]
    ordered = sorted(values)
    steps = [max(min(1, (len(values) - j) * ordered[j]) for j in range(i + 1)) for i in range(len(values))]
    np.testing.assert_allclose(report.holm(values), [steps[ordered.index(v)] for v in values])
    assert report.holm([]).size == 0


def test_false_claims_are_rare_under_the_null():
    """400 reports of 15 pairs of equal learners: at most about 5 % of the reports claim any difference."""
    chance = np.random.default_rng(0)
    claims = 0
    for _ in range(400):
        runs = chance.normal(size=(6, 64)) + chance.normal(size=64)  # shared luck, as in paired runs
        p = [report._paired(runs[i] - runs[j])[2] for i in range(6) for j in range(i)]
        claims += bool(np.any(report.holm(p) < 0.05))
    assert claims / 400 < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 400)


def test_bounds_lie_above_the_regret():
    spec = jb.Spec(
        2000, 64, [jb.BestOfBothWorlds("oracle"), jb.DelayedExp3()], [jb.losses.Bernoulli([0.3, 0.5, 0.5])], [jb.delays.Fixed(4)]
    )
    for cell in Plan.make(spec).cells:
        result = jb.simulate(cell.learner, cell.losses, cell.delays, rounds=2000, runs=64, key=jax.random.key(0))
        bound, source = report.proved_bound(cell, result.rounds)  # type: ignore[misc]
        assert source
        assert np.all(bound >= result.regret.mean(1))
        assert bound[-1] < 40 * result.regret[-1].mean()


class _Outline(html.parser.HTMLParser):
    """Tags that are never closed, and everything that would be fetched."""

    def __init__(self):
        super().__init__()
        self.open, self.fetched = [], []

    def handle_starttag(self, tag, attrs):
        self.fetched += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report of a spec whose labels try to be code."""
    out = tmp_path_factory.mktemp("report")
    evil = "<script>alert(1)</script>"
    spec = jb.Spec(
        rounds=300,
        runs=40,
        learners=[jb.Entry("delayed-exp3", label=evil), jb.Entry("uniform"), jb.Entry("uniform", label="the same again")],
        losses=[jb.losses.Bernoulli([0.1, 0.9, 0.9])],
        delays=[jb.delays.Fixed(3)],
    )
    jb.sweep(spec, out / "sweep")
    return report.write_report(out / "sweep")


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
        assert f"<td>{report._number(mean)} <small>" in text
    assert "upper bounds with proved constants" in text
    assert "threefry2x32" in text
    assert (page.parent / "losses0_delays0.png").stat().st_size > 10_000


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
