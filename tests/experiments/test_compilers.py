"""Programs compiled for GPUs and TPUs: the reader of their text, and the text itself where the compilers are installed."""

import pytest

from experiments.accelerators import __main__ as accelerators
from experiments.accelerators import compilers
from jaxbandit.cli import app, doctor
from jaxbandit.cli.errors import WRONG_COMMAND

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


PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 place) {
  .reg .f32 %f<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [place];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.f32 %f1, [%rd2];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd2], %f2;
  ret;
}
"""


def test_registers_are_those_that_the_assembler_counts(tmp_path):
    assert compilers.read_registers(str(tmp_path)) is None  # nothing was dumped
    (tmp_path / "one.ptx").write_text(PTX)
    if compilers.assembler() is None:
        assert compilers.read_registers(str(tmp_path)) is None
        pytest.skip(f"counting registers needs NVIDIA's assembler: {compilers.PACKAGES}")
    found = compilers.read_registers(str(tmp_path))
    assert 4 <= found.most <= 32
    assert found.spilled == 0
    (tmp_path / "two.ptx").write_text(PTX.replace("add.f32", "no.such.thing"))
    with pytest.raises(RuntimeError, match=r"two\.ptx: the assembler refuses it"):
        compilers.read_registers(str(tmp_path))


def test_the_assemblers_words_are_read(tmp_path, monkeypatch):
    """Of two kernels the one with more registers and the one that spills more, whichever they are."""
    said = "echo 'Used 40 registers'; echo '12 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads'"
    fake = tmp_path / "ptxas"
    fake.write_text(f"#!/bin/sh\n({said}; echo 'Used 154 registers'; echo '0 bytes stack frame, 0 bytes spill stores') >&2\n")
    fake.chmod(0o755)
    monkeypatch.setattr(compilers, "assembler", lambda: str(fake))
    (tmp_path / "one.ptx").write_text(PTX)
    assert compilers.read_registers(str(tmp_path)) == compilers.Registers(154, 8)


def test_the_command_without_compilers_names_the_package(capsys, monkeypatch):
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: None)
    assert call("t4", "--json") == WRONG_COMMAND
    assert "pip install" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("dump", "said"), [("file", "file is a file; give a folder"), ("/proc/new", "nothing can be written into")]
)
def test_a_folder_that_cannot_be_written(dump, said, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert call("t4", "--dump", dump) == WRONG_COMMAND
    assert said in capsys.readouterr().err


def call(*words: str) -> int:
    return app.call_one(accelerators.read_compiled, accelerators.NAME, words)


def compiled(target: str, arms: int, delays: str) -> dict:
    if message := compilers.missing(target):
        pytest.skip(message)
    game = doctor.game_of("bobw(max_delay=10)", arms, delays, doctor.RUNS)
    return accelerators.compiled_for(target, game)


@pytest.mark.thorough
def test_registers_are_not_those_of_an_earlier_dump(tmp_path):
    """A folder may hold the kernels of another program."""
    if message := compilers.missing("t4"):
        pytest.skip(message)
    (tmp_path / "earlier.ptx").write_text(PTX.replace("add.f32", "no.such.thing"))
    report = accelerators.compiled_for("t4", doctor.game_of("uniform", 2, "fixed(1)", 1024), tmp_path)
    assert report["registers"] is None or 0 < report["registers"] < 128
    assert "known_trip_count" in (tmp_path / "compiled.txt").read_text()
    assert [file for file in tmp_path.iterdir() if file.name.startswith("module")]


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
    ("t4", 2, GEOMETRIC): (5, 200),
    ("a100", 2, FIXED): (6, 180),
    ("a100", 2, GEOMETRIC): (5, 200),
    ("h100", 2, FIXED): (6, 190),
    ("h100", 2, GEOMETRIC): (5, 230),
    ("t4", 16, FIXED): (8, 720),
    ("t4", 16, GEOMETRIC): (8, 580),
    ("a100", 16, FIXED): (8, 720),
    ("a100", 16, GEOMETRIC): (8, 580),
    ("h100", 16, FIXED): (8, 720),
    ("h100", 16, GEOMETRIC): (8, 580),
}


SLOW = [case for case in LIMITS if case[:2] != ("t4", 10)]


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow if case in SLOW else pytest.mark.thorough) for case in LIMITS]
)
def test_a_round_is_few_kernels(case):
    report, (kernels, traffic) = compiled(*case), LIMITS[case]
    assert report["evaluation"] == "unrolled"
    assert report["unknown_trip_counts"] == report["ring_copies"] == 0
    assert report["kernels_per_round"] <= kernels
    assert report["bytes_per_run_round"] <= traffic
    # A T4 plays four runs in a thread, which takes all its registers and spills. Without an assembler, or with jax 0.12, whose
    # compiler leaves no kernels to count in, nothing is known.
    if case[0] != "t4" and report["registers"] is not None:
        assert report["registers"] <= 255
        assert report["spilled_bytes"] == 0
