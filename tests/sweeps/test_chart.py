"""The charts of a report: every number where it belongs, read back from the SVG."""

import re

import numpy as np
import pytest

from jaxbandit.sweeps.chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Line, chart


def points(text, tag):
    return [
        np.array([pair.split(",") for pair in found.split()], float) for found in re.findall(rf'<{tag} points="([^"]*)"', text)
    ]


@pytest.mark.parametrize("log", [False, True])
def test_curves_bands_and_ticks_agree_with_the_numbers(log):
    """Where each point must be by the rule of three, in logarithms where the axes are; ticks lie on the same scale."""
    x, y = np.array([1.0, 10, 100, 1000]), np.array([2.0, 30, 250, 4000])
    limits = (1.0, 5000.0) if log else (0.0, 5000.0)
    text = chart([Line(x, y, "#000000", low=y / 2, high=y * 1.1)], limits, log=log, title="<a>")
    scale = np.log if log else np.asarray

    def expected(values, low, high, begin, end):
        return begin + (scale(values) - scale(low)) / (scale(high) - scale(low)) * (end - begin)

    def across(values):
        return expected(values, 1.0 if log else 0.0, 1000.0, LEFT, WIDTH - RIGHT)

    def down(values):
        return expected(values, *limits, HEIGHT - BOTTOM, TOP)

    (curve,) = points(text, "polyline")
    np.testing.assert_allclose(curve, np.stack([across(x), down(y)], 1), atol=0.051)
    (band,) = points(text, "polygon")
    np.testing.assert_allclose(band[:4, 1], down(y / 2), atol=0.051)
    np.testing.assert_allclose(band[4:, 1], down(1.1 * y)[::-1], atol=0.051)
    ticks = re.findall(r'<text x="([\d.]+)" y="\d+" text-anchor="middle">([\d,.]+)</text>', text)
    assert len(ticks) >= 3
    for place, told in ticks:
        assert float(place) == pytest.approx(float(across(float(told.replace(",", "")))), abs=0.051)
    sides = re.findall(r'y="([\d.]+)" dy=".35em" text-anchor="end">([\d,.]+)</text>', text)
    assert len(sides) >= 3
    for place, told in sides:
        assert float(place) == pytest.approx(float(down(float(told.replace(",", "")))), abs=0.051)
    assert "<title>&lt;a&gt;</title>" in text


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("limits", [(1e-6, 1e-5), (0.7, 1.4), (3.0, 3.0001), (1.0, 1e6), (1e-3, 1e9)])
def test_ticks_are_few_and_inside_whatever_the_limits(limits, log):
    text = chart([Line(np.array([1.0, 50.0]), np.array(limits), "#000000")], limits, log=log, title="")
    places = [float(place) for place in re.findall(r'y="([\d.]+)" dy=', text)]
    assert 2 <= len(places) <= 9
    assert all(TOP - 0.1 <= place <= HEIGHT - BOTTOM + 0.1 for place in places)


def test_what_has_no_place_is_left_out():
    """A regret of 0 on a logarithmic axis lies below it; NaN is no point; one run alone has no band."""
    x, y = np.array([1.0, 2.0, 3.0]), np.array([0.0, np.nan, 5.0])
    text = chart([Line(x, y, "#000000", low=np.full(3, np.nan), high=np.full(3, np.nan))], (1.0, 10.0), log=True, title="")
    (curve,) = points(text, "polyline")
    assert len(curve) == 2
    assert curve[0, 1] > HEIGHT - BOTTOM
    assert not points(text, "polygon")
    assert "nan" not in text
