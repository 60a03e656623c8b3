"""attsvm info, --help and --version."""

import os
import pathlib
import struct

import numpy as np
import pytest

FIXTURES = sorted(pathlib.Path(os.environ["ATTSVM_FIXTURES"]).glob("*.task.npz"))


@pytest.mark.parametrize("path", FIXTURES[::4], ids=lambda p: p.name)
def test_references_are_described(attsvm, path):
    info = attsvm("info", path, "--json")
    assert info.code == 0 and info.err == ""
    fields = info.json()
    with np.load(path) as arrays:
        n, T, dv = arrays["tokens"].shape
        assert (fields["sequences"], fields["longest"], fields["dv"]) == (n, T, dv)
        assert fields["labels_positive"] == int((arrays["labels"] > 0).sum())
        if "head" in arrays.files and "head_hidden" not in arrays.files:
            scores = arrays["labels"][:, None] * (arrays["tokens"] @ arrays["head"])
            best = scores.max(axis=1, keepdims=True)
            tied = {i for i in range(n) if (scores[i] >= best[i] - 1e-12 * np.abs(scores[i]).max()).sum() > 1}
            assert fields["optimal"] == [int(t) for t in scores.argmax(axis=1)] or tied
            assert {tie["query"] for tie in fields["ties"]} == tied


@pytest.mark.parametrize("dtype, order", [("<f8", "C"), (">f8", "C"), ("<f4", "F"), (">f4", "F"), ("<f2", "C"), ("<i4", "F"), ("|u1", "C")])
@pytest.mark.parametrize("compressed", [False, True])
def test_what_numpy_writes_is_read(attsvm, tmp_path, dtype, order, compressed):
    tokens = np.asarray(np.arange(24).reshape(2, 3, 4) % 7, dtype=dtype, order=order)
    (np.savez_compressed if compressed else np.savez)(tmp_path / "t.npz", tokens=tokens, head=np.array([1.0, 0, 0, 0]))
    fields = attsvm("info", tmp_path / "t.npz", "--json").json()
    norms = np.linalg.norm(tokens.astype(float), axis=-1)
    assert np.allclose(fields["key_norms"], [norms.min(), norms.max()], rtol=1e-15)
    assert fields["optimal"] == [int(t) for t in tokens[:, :, 0].astype(float).argmax(axis=1)]


def test_our_files_are_read_by_numpy(attsvm, tmp_path):
    attsvm("generate", "causal", "-o", tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz") as arrays:
        assert arrays["tokens"].shape == (6, 8, 10) and arrays["tokens"].dtype == np.float64
        assert arrays["visible"].tolist() == list(range(1, 9)) * 6


def test_answers_are_listed(attsvm, tmp_path):
    attsvm("generate", "random", "-o", tmp_path / "t.npz")
    objective = attsvm("solve", tmp_path / "t.npz", "-o", tmp_path / "s.npz", "--json").json()["objective"]
    fields = attsvm("info", tmp_path / "s.npz", "--json").json()
    arrays = {entry["name"]: entry for entry in fields["arrays"]}
    assert arrays["W"]["shape"] == [10, 10] and "value" not in arrays["W"]
    assert arrays["status"]["value"] == "optimal" and arrays["objective"]["value"] == objective
    assert "status = optimal" in attsvm("info", tmp_path / "s.npz").out


def test_integers_are_shown_as_integers(attsvm, tmp_path):
    attsvm("generate", "random", "-o", tmp_path / "t.npz")
    attsvm("train", tmp_path / "t.npz", "--steps", 2, "-o", tmp_path / "r.npz")
    fingerprint = int(np.load(tmp_path / "r.npz")["task_fingerprint"])
    shown = attsvm("info", tmp_path / "r.npz")
    assert f"task_fingerprint = {fingerprint}\n" in shown.out
    arrays = {entry["name"]: entry for entry in attsvm("info", tmp_path / "r.npz", "--json").json()["arrays"]}
    value = arrays["task_fingerprint"]["value"]
    assert isinstance(value, int) and value == fingerprint


@pytest.mark.parametrize("number", [np.int64(-2**63), np.uint64(2**64 - 1), np.int8(-1), np.array(258, dtype=">i4")])
def test_integers_of_any_type_keep_their_digits(attsvm, tmp_path, number):
    np.savez(tmp_path / "w.npz", W=np.eye(2), number=number)
    assert f"number = {int(number)}\n" in attsvm("info", tmp_path / "w.npz").out


def test_the_program_describes_itself(attsvm):
    fields = attsvm("info", "--json").json()
    assert fields["instructions"] in fields["instructions_available"] and fields["threads"] >= 1
    assert attsvm("info", "--threads", 3, "--json").json()["threads"] == 3
    version = attsvm("--version")
    assert version.code == 0 and version.out == f"attsvm {fields['attsvm']}\n"


def test_help_teaches_with_examples_that_work(attsvm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.txt").write_text("the cat sat on the mat and the dog sat on the rug " * 4)
    for arguments in (["--help"], ["generate", "--help"], ["info", "--help"]):
        text = attsvm(*arguments)
        assert text.code == 0 and "Examples:" in text.out
        for line in text.out.splitlines():
            if line.startswith("  attsvm ") and "model.safetensors" not in line and "heads.npz" not in line:
                command = line.strip().split("  ")[0].split()[1:]
                assert attsvm(*command, *(["--force"] if "-o" in command else []), timeout=900).code == 0, line


def test_a_table_for_people(attsvm, tmp_path):
    attsvm("generate", "random", "-o", tmp_path / "t.npz")
    shown = attsvm("info", tmp_path / "t.npz")
    assert shown.code == 0 and "separable" in shown.out and "linearly independent" in shown.out
    assert max(len(line) for line in shown.out.splitlines()) <= 120 + len(str(tmp_path))


def test_a_short_directory_beside_a_zip64_record(attsvm, tmp_path):
    """zipfile writes both for files over 2 GiB whose numbers still fit the short one."""
    path = tmp_path / "t.npz"
    np.savez(path, tokens=np.ones((1, 2, 2)))
    data = path.read_bytes()
    end = data.rindex(b"PK\x05\x06")
    entries, size, offset = struct.unpack("<HII", data[end + 10:end + 20])
    wide = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, entries, entries, size, offset)
    locator = struct.pack("<IIQI", 0x07064B50, 0, end, 1)
    path.write_bytes(data[:end] + wide + locator + data[end:])
    assert np.load(path)["tokens"].shape == (1, 2, 2)
    assert attsvm("info", path, "--json").json()["tokens"] == 2


def test_one_is_not_counted_as_many(attsvm, tmp_path):
    np.savez(tmp_path / "w.npz", W=np.eye(2))
    assert attsvm("info", tmp_path / "w.npz").out.splitlines()[0].endswith(": 1 array")
    said = attsvm("generate", "random", "--n", 1, "--T", 2, "-o", tmp_path / "t.npz").out
    assert "1 query, 1 sequence of up to 2 tokens" in said
