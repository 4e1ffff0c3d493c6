"""What the compilers for GPUs and TPUs make of a round: reading their text, and the text itself where they are installed."""

import json

import pytest

from jaxbandit import compilers
from jaxbandit.cli import app, doctor
from jaxbandit.cli.speaking import WRONG_COMMAND

TEXT = """
%turn (p.0: (s32[], f32[4,1024], f32[1024])) -> (s32[], f32[4,1024], f32[1024]) {
  %p.0 = (s32[], f32[4,1024]{1,0}, f32[1024]{0}) parameter(0)
  %t = s32[] get-tuple-element(%p.0), index=0
  %ring = f32[4,1024]{1,0} get-tuple-element(%p.0), index=1
  %x = f32[1024]{0} get-tuple-element(%p.0), index=2
  %one = s32[] constant(1)
  %next = s32[] add(%t, %one)
  %again = f32[4,1024]{1,0} copy(%ring)
  %written = f32[4,1024]{1,0} fusion(%again, %x, %t), kind=kLoop, calls=%write
  %inner = (s32[], f32[1024]{0}) while(%pair), condition=%test, body=%short, backend_config={"known_trip_count":{"n":"3"}}
  %open = (s32[], f32[1024]{0}) while(%pair), condition=%test, body=%short
  ROOT %out = (s32[], f32[4,1024]{1,0}, f32[1024]{0}) tuple(%next, %written, %x)
}

%write (a: f32[4,1024], b: f32[1024], c: s32[]) -> f32[4,1024] {
  %a = f32[4,1024]{1,0} parameter(0)
  %b = f32[1024]{0} parameter(1)
  %c = s32[] parameter(2)
  %zero = s32[] constant(0)
  %row = f32[1,1024]{1,0} bitcast(%b)
  ROOT %set = f32[4,1024]{1,0} dynamic-update-slice(%a, %row, %c, %zero)
}

%short (q: (s32[], f32[1024])) -> (s32[], f32[1024]) {
  %q = (s32[], f32[1024]{0}) parameter(0)
  %y = f32[1024]{0} get-tuple-element(%q), index=1
  %twice = f32[1024]{0} add(%y, %y)
  ROOT %both = (s32[], f32[1024]{0}) tuple(%n, %twice)
}

ENTRY %main (z: s32[]) -> s32[] {
  %z = s32[] parameter(0)
  %loop = (s32[], f32[4,1024]{1,0}, f32[1024]{0}) while(%start), condition=%test, body=%turn, backend_config={"known_trip_count":{"n":"64"}}
  ROOT %r = s32[] get-tuple-element(%loop), index=0
}
"""


def test_the_cost_of_a_round_is_read_from_the_text():
    cost = compilers.read_round(TEXT, "t4", 64, 1024)
    assert cost.kernels == 3 + 3 * 1 + 1  # add, copy, fusion; a loop of three turns; a turn of the loop of unknown length
    assert (cost.unknown_loops, cost.copies) == (1, 1)
    vector = 4 * 1024
    row = 2 * vector + 4  # of the ring only the row that is set: the update is read and written, and the index read
    assert cost.bytes == 2 * 4 + 2 * 4 * vector + row + (3 + compilers.PASSES) * 2 * vector
    slower = compilers.read_round(TEXT.replace('{"known_trip_count":{"n":"3"}}', "{}"), "t4", 64, 1024)
    assert slower.seconds > cost.seconds + compilers.PASSES * compilers.SYNC


def test_a_program_without_chunks_is_an_error():
    with pytest.raises(ValueError, match="no loop of 32 turns"):
        compilers.read_round(TEXT, "t4", 32, 1024)


def test_doctor_says_what_is_here(capsys):
    assert app.call(["doctor", "--arms", "3", "--delays", "fixed(10)", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["platform"], report["form"], report["block"]) == ("cpu", "array", 256)


def test_doctor_without_compilers_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: None)
    assert app.call(["doctor", "--compile-for", "t4", "--json"]) == WRONG_COMMAND
    assert "pip install" in capsys.readouterr().err


def compiled(target: str, arms: int, delays: str) -> dict:
    if message := compilers.missing(target):
        pytest.skip(message)
    game = doctor.game_of("bobw(max_delay=10)", arms, delays, doctor.RUNS)
    return doctor.compiled_for(target, game)


FIXED, GEOMETRIC = "fixed(10)", "geometric(mean=10.0, bound=127)"
# target, arms, delays -> the most kernels a round and bytes a run and round
LIMITS = {
    ("t4", 10, FIXED): (7, 360),
    ("t4", 10, GEOMETRIC): (8, 460),
    ("a100", 10, FIXED): (7, 360),
    ("a100", 10, GEOMETRIC): (8, 460),
    ("h100", 10, FIXED): (7, 360),
    ("h100", 10, GEOMETRIC): (8, 460),
    ("t4", 2, FIXED): (6, 180),
    ("t4", 16, FIXED): (8, 720),
    ("t4", 16, GEOMETRIC): (8, 580),
}


@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.slow] * (case[:2] != ("t4", 10))) for case in LIMITS])
def test_a_round_is_few_kernels(case):
    report, (kernels, traffic) = compiled(*case), LIMITS[case]
    assert (report["form"], report["block"]) == ("flat", 65536)
    assert report["unknown_trip_counts"] == report["ring_copies"] == 0
    assert report["kernels_per_round"] <= kernels
    assert report["bytes_per_run_round"] <= traffic
