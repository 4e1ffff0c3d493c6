"""Files are whole or not there, readable as the umask says, and nothing of anybody else's is touched."""

import io
import os
import stat
import zipfile

import numpy as np
import pytest

from jaxbandit._io import files


def test_writes_text_and_bytes(tmp_path):
    files.write_whole(tmp_path / "new" / "a.txt", "σ")
    files.write_whole(tmp_path / "new" / "a.txt", b"again")
    assert (tmp_path / "new" / "a.txt").read_bytes() == b"again"
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["a.txt"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions_follow_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        files.write_whole(tmp_path / "a", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~umask


def test_an_error_leaves_what_was_there(tmp_path):
    (tmp_path / "a").write_text("old")

    def interrupted():
        with files.whole_file(tmp_path / "a") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "a").read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_folder_is_refused_before_anything_is_written(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="this is a folder"):
        files.write_whole(tmp_path / "folder", "x")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_only_drafts_are_removed(tmp_path):
    drafts = tmp_path / "drafts"
    drafts.mkdir()
    (drafts / "thesis.tex").write_text("mine")
    (drafts / "notes.draft").write_text("mine")
    with files.whole_file(tmp_path / "a", drafts=drafts):
        (draft,) = [name for name in os.listdir(drafts) if files.is_draft(name)]
    (drafts / draft).write_text("left by a killed process")
    files.remove_drafts(drafts)
    assert sorted(os.listdir(drafts)) == ["notes.draft", "thesis.tex"]


def archive(path, *members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members:
            file.writestr(name, content)
    return path


def header(text, version=b"\x01\x00"):
    text = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY" + version + len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little") + text


def test_reads_what_savez_writes(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.asfortranarray(np.arange(6).reshape(2, 3)), "c": np.array("text")}
    np.savez(tmp_path / "x.npz", **arrays)
    read = files.read_arrays(tmp_path / "x.npz")
    assert {name: (array.dtype, array.tolist()) for name, array in read.items()} == {
        name: (array.dtype, array.tolist()) for name, array in arrays.items()
    }
    read["a"][0, 0] = 7  # writable, like any array


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }",  # 8 TB
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': ((((((((1,)))))))), }",
        "{'descr': '<f8'}",
        "(" * 100,
    ],
)
def test_headers_are_not_believed(tmp_path, text):
    for version in (b"\x01\x00", b"\x02\x00", b"\x09\x00"):
        path = archive(tmp_path / "x.npz", ("a.npy", header(text, version) + b"\0" * 16))
        with pytest.raises(ValueError, match="not a file of arrays"):
            files.read_arrays(path)


def test_a_small_file_does_not_ask_for_much_memory(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(1 << 21))
    path = archive(tmp_path / "bomb.npz", ("a.npy", buffer.getvalue()), compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1 << 16
    with pytest.raises(ValueError, match="larger inside than outside"):
        files.read_arrays(path)
