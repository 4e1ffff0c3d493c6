"""The files of the playground: styles of the library, searched adversaries, the recording and the picture for shared links."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import jaxbandit as jb
from experiments.playground import record, search

FOLDER = Path(__file__).parents[2] / "docs" / "playground"


def constant(file, name):
    """The JSON-like value of a constant in one of the page's scripts."""
    text = re.search(rf"const {name} = (.*?);\n", (FOLDER / file).read_text(encoding="utf-8"), re.DOTALL)[1]
    text = re.sub(r"([{,]\s*)(\w+):", r'\1"\2":', text)
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", text))


def test_names_colours_and_dashes_are_those_of_the_library():
    for key, style in constant("style.js", "ALGORITHMS").items():
        library = jb.plots.ALGORITHMS[key]
        assert (style["name"], style["colour"], tuple(style["dash"])) == (library.name, library.colour, library.dash), key
    assert constant("style.js", "ARM_COLOURS") == list(jb.plots.COLOURS[:6])


@pytest.mark.thorough
def test_the_searched_sequences_force_the_regret_that_is_shown():
    stored = constant("adversaries.js", "SEARCHED")
    assert (stored["rounds"], stored["delay"], stored["arms"]) == (search.ROUNDS, search.DELAY, search.ARMS)
    assert stored["adversaries"].keys() == search.learners().keys() == constant("style.js", "ALGORITHMS").keys()
    for name in ("tsallis-inf", "thompson"):
        one = stored["adversaries"][name]
        good = search.good_arms(np.array(one["switches"], int))
        mean, error = search.regret(search.learners()[name], good, runs=512, seed=5)  # neither seed of the search
        assert abs(mean - one["regret"]) < 5 * np.hypot(error, one["error"]), name


def test_the_search_moves_to_valid_neighbours_and_improves():
    rng = np.random.default_rng(0)
    switches = np.array([40, 80])
    for _ in range(300):
        switches = search.moved(rng, switches)
        assert np.all(np.diff(switches) > 0)
        assert not len(switches) or (switches[0] >= 1 and switches[-1] < search.ROUNDS)
    # A score with a known maximum: the sequence whose good arm is 1 in rounds 100 to 199.
    target = search.good_arms(np.array([100, 200]))
    found = search.search(lambda good: float((good == target).mean()), steps=400, seed=0)
    assert (search.good_arms(found) == target).mean() > 0.95


def test_the_open_graph_image_has_the_size_that_the_page_declares():
    from PIL import Image

    html = (FOLDER / "index.html").read_text(encoding="utf-8")
    declared = tuple(int(re.search(rf'og:image:{side}" content="(\d+)"', html)[1]) for side in ("width", "height"))
    with Image.open(FOLDER / re.search(r'og:image" content="([^"]+)"', html)[1]) as image:
        assert image.size == declared == (1200, 630)


def test_the_recording_of_the_strip():
    """Each action of a run of the library emits one dot; everything lies on the strip, and the file is small."""
    run = record.play()
    assert run.probabilities.shape == (record.ROUNDS, record.ARMS)
    np.testing.assert_allclose(run.probabilities.sum(1), 1, atol=1e-5)
    assert np.all(run.probabilities[: record.DELAY + 1] == 1 / record.ARMS)  # nothing is observed before
    assert np.any(run.probabilities[record.DELAY + 1 :] != 1 / record.ARMS)
    for text in (record.svg(run), (FOLDER.parent / "delay_strip.svg").read_text(encoding="utf-8")):
        drawn = ElementTree.fromstring(text)  # well-formed
        falling = [one for one in drawn.iter() if "animation-name:f" in one.get("style", "")]
        assert len(falling) == record.ROUNDS
        assert len(text) < 1_000_000
        assert not re.search(r"nan|<script|https?://(?!www.w3.org/2000/svg)", text, re.IGNORECASE)
