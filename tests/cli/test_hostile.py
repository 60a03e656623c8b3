"""Bad files: exit code 2, one line on stderr that names file and array, nothing on stdout, soon, in little memory."""

import io
import json
import os
import struct
import zlib

import numpy as np
import pytest

TOKENS = np.arange(12.0).reshape(2, 3, 2)
ONES = np.ones(2)


# --- what the arrays say ---

def changed(array, index, value):
    array = np.array(array)
    array[index] = value
    return array


TASKS = {
    "no_tokens": (dict(labels=ONES), "tokens is missing"),
    "tokens_rank": (dict(tokens=np.ones((2, 3))), "tokens has shape (2,3)"),
    "tokens_type": (dict(tokens=TOKENS.astype(complex)), "tokens: type '<c16'"),
    "tokens_text": (dict(tokens=np.array([[["a"]]])), "tokens is text; must be numbers"),
    "tokens_objects": (dict(tokens=np.array([[[None]]])), "tokens: type '|O'"),
    "tokens_records": (dict(tokens=np.zeros((1, 1, 1), [("a", "f8")])), "tokens: npy header"),
    "nan": (dict(tokens=changed(TOKENS, (1, 2, 0), np.nan)), "tokens[1,2,0] = nan"),
    "inf": (dict(tokens=changed(TOKENS, (0, 0, 1), -np.inf)), "tokens[0,0,1] = -inf"),
    "nan_single": (dict(tokens=changed(TOKENS.astype("f4"), (1, 0, 1), np.nan)), "tokens[1,0,1] = nan"),
    "inf_half": (dict(tokens=changed(TOKENS.astype("f2"), (1, 0, 1), np.inf)), "tokens[1,0,1] = inf"),
    "nan_big_endian": (dict(tokens=changed(TOKENS.astype(">f8"), (1, 2, 1), np.nan)), "tokens[1,2,1] = nan"),
    "nan_fortran": (dict(tokens=np.asfortranarray(changed(TOKENS, (0, 2, 1), np.nan))), "tokens[0,2,1] = nan"),
    "inf_keys": (dict(tokens=TOKENS, keys=changed(TOKENS, (1, 1, 1), np.inf)), "keys[1,1,1] = inf"),
    "inf_queries": (dict(tokens=TOKENS, queries=np.array([[1, 2], [3, np.inf]])), "queries[1,1] = inf"),
    "nan_labels": (dict(tokens=TOKENS, labels=np.array([1, np.nan])), "labels[1] = nan"),
    "nan_bias": (dict(tokens=TOKENS, bias=np.array([[0, 1, 2], [0, np.nan, 1]])), "bias[1,1] = nan"),
    "inf_bias": (dict(tokens=TOKENS, bias=np.array([[0, 1, -np.inf], [0, 0, 1]])), "bias[0,2] = -inf"),
    "bias_shape": (dict(tokens=TOKENS, bias=np.zeros((2, 2))), "bias has shape (2,2); must be (2,3)"),
    "nan_head": (dict(tokens=TOKENS, head=np.array([np.nan, 1])), "head[0] = nan"),
    "nan_hidden": (dict(tokens=TOKENS, head_hidden=np.array([[1, 2], [np.nan, 1]])), "head_hidden[1,0] = nan"),
    "nan_quadratic": (dict(tokens=TOKENS, head=ONES, head_quadratic=np.nan), "head_quadratic = nan"),
    "label_zero": (dict(tokens=TOKENS, labels=np.array([1, 0])), "labels[1] = 0"),
    "label_half": (dict(tokens=TOKENS, labels=np.array([-0.5, 1])), "labels[0] = -0.5"),
    "labels_shape": (dict(tokens=TOKENS, labels=np.ones(3)), "labels has shape (3)"),
    "select_high": (dict(tokens=TOKENS, select=np.array([0, 3])), "select[1] = 3"),
    "select_low": (dict(tokens=TOKENS, select=np.array([-1, 0])), "select[0] = -1"),
    "select_hidden": (dict(tokens=TOKENS, visible=np.array([3, 2]), select=np.array([2, 2])), "select[1] = 2"),
    "select_float": (dict(tokens=TOKENS, select=ONES), "select has type float64"),
    "select_shape": (dict(tokens=TOKENS, select=np.ones((2, 2), bool)), "select has type bool and shape (2,2)"),
    "mask_empty": (dict(tokens=TOKENS, select=np.array([[1, 0, 0], [0, 0, 0]], bool)), "select[1] keeps no token"),
    "mask_hidden": (dict(tokens=TOKENS, visible=np.array([3, 2]), select=np.ones((2, 3), bool)), "select[1,2]"),
    "unknown": (dict(tokens=TOKENS, label=ONES), "unknown array 'label'"),
    "unknown_case": (dict(tokens=TOKENS, X_note=ONES), "unknown array 'X_note'"),
    "queries_twice": (dict(tokens=TOKENS, queries=np.eye(2), query_token=np.array([0, 1])), "queries and query_token"),
    "queries_count": (dict(tokens=TOKENS, queries=np.eye(3)), "sequence is missing"),
    "query_token_high": (dict(tokens=TOKENS, query_token=np.array([0, 3])), "query_token[1] = 3"),
    "query_token_float": (dict(tokens=TOKENS, query_token=ONES), "query_token has type float64"),
    "sequence_high": (dict(tokens=TOKENS, sequence=np.array([0, 1, 2])), "sequence[2] = 2"),
    "sequence_low": (dict(tokens=TOKENS, sequence=np.array([-1])), "sequence[0] = -1"),
    "sequence_huge": (dict(tokens=TOKENS, sequence=np.array([2**64 - 1], "u8")), "sequence[0] = 18446744073709551615"),
    "visible_zero": (dict(tokens=TOKENS, visible=np.array([3, 0])), "visible[1] = 0"),
    "visible_least": (dict(tokens=TOKENS, visible=np.array([3, -2**63])), "visible[1] = -9223372036854775808"),
    "visible_high": (dict(tokens=TOKENS, visible=np.array([4, 1])), "visible[0] = 4"),
    "visible_bool": (dict(tokens=TOKENS, visible=np.array([True, True])), "visible has type bool"),
    "keys_shape": (dict(tokens=TOKENS, keys=np.ones((2, 2, 2))), "keys has shape (2,2,2)"),
    "keys_rank": (dict(tokens=TOKENS, keys=np.array(1.0)), "keys has shape ()"),
    "head_shape": (dict(tokens=TOKENS, head=np.ones(3)), "head has shape (3)"),
    "hidden_shape": (dict(tokens=TOKENS, head_hidden=np.ones((3, 2))), "head_hidden has shape (3,2)"),
    "hidden_output": (dict(tokens=TOKENS, head_hidden=np.ones((2, 4)), head=np.ones(2)), "head has shape (2)"),
    "heads_both": (dict(tokens=TOKENS, head_hidden=np.eye(2), head_quadratic=1.0), "head_hidden and head_quadratic"),
    "quadratic_alone": (dict(tokens=TOKENS, head_quadratic=1.0), "head is missing"),
    "quadratic_shape": (dict(tokens=TOKENS, head=ONES, head_quadratic=np.ones(1)), "head_quadratic has shape (1)"),
    **{f"empty_tokens_{axis}": (dict(tokens=np.ones(np.where(np.arange(3) == axis, 0, 2))), "tokens has shape")
       for axis in range(3)},
    "empty_queries": (dict(tokens=TOKENS, queries=np.ones((0, 2))), "queries has shape (0,2)"),
    "empty_query": (dict(tokens=TOKENS, queries=np.ones((2, 0))), "queries has shape (2,0)"),
    "empty_query_token": (dict(tokens=TOKENS, query_token=np.zeros(0, int)), "query_token has shape (0)"),
    "empty_sequence": (dict(tokens=TOKENS, sequence=np.zeros(0, int)), "sequence has shape (0)"),
    "empty_keys": (dict(tokens=TOKENS, keys=np.ones((2, 3, 0))), "keys has shape (2,3,0)"),
    "empty_hidden": (dict(tokens=TOKENS, head_hidden=np.ones((2, 0))), "head_hidden has shape (2,0)"),
    **{f"offsets_{name}": (dict(tokens=np.ones((5, 2)), offsets=np.array(offsets)), message)
       for name, offsets, message in [
           ("first", [1, 5], "offsets[0] = 1"), ("last", [0, 2, 4], "offsets[2] = 4"),
           ("beyond", [0, 6], "offsets[1] = 6"), ("back", [0, 3, 2, 5], "offsets[2] = 2"),
           ("empty", [0, 2, 2, 5], "offsets[2] = 2"), ("none", [0], "offsets has shape (1)"),
           ("rank", [[0, 5]], "offsets has shape (1,2)"), ("float", [0.0, 5.0], "offsets has type float64"),
           ("least", [0, -2**63, 5], "offsets[1] = -9223372036854775808")]},
    "offsets_rank3": (dict(tokens=TOKENS, offsets=np.array([0, 2])), "tokens has shape (2,3,2)"),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("name", TASKS)
def test_arrays(refused, task_file, name, save):
    arrays, message = TASKS[name]
    refused(task_file(save=save, **arrays), message)


def test_own_arrays_are_not_read(attsvm, task_file):
    assert attsvm("info", task_file(tokens=TOKENS, x_=np.array(["text"]), x_nan=np.nan)).code == 0


@pytest.mark.parametrize("size", [1e308, 5e-324])
def test_extreme_numbers_are_good(attsvm, task_file, size):
    result = attsvm("info", task_file(tokens=np.full((2, 3, 2), size), queries=np.full((2, 2), -size)), "--json")
    assert result.code == 0 and result.json()["sequences"] == 2


@pytest.mark.parametrize("head", [dict(head=np.full(2, 1e308)), dict(head=np.array([1e308, -1e308])),
                                  dict(head_hidden=np.full((2, 2), 1e308)), dict(head=ONES, head_quadratic=1e308)])
def test_scores_that_overflow(refused, task_file, head):
    refused(task_file(tokens=np.full((2, 3, 2), 1e308), **head), "head")


# --- the zip file around them ---

def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npy_text(text, data=b"", version=1):
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + data


def deflate(data):
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(data) + coder.flush()


def entry(data, name="tokens.npy", method=0, **claims):
    """One entry; `claims` replace what its headers would say."""
    stored = deflate(data) if method == 8 else data
    return dict(name=name, local_name=name, method=method, flags=0, crc=zlib.crc32(data), stored=len(stored),
                size=len(data), extra=b"", offset=None, payload=stored) | claims


def zip_file(*entries, **claims):
    """A zip file of these entries; `claims` replace what its last record says."""
    body, directory = b"", b""
    for e in entries:
        offset = len(body) if e["offset"] is None else e["offset"]
        name, local = (n if isinstance(n, bytes) else n.encode() for n in (e["name"], e["local_name"]))
        facts = struct.pack("<HHIIII", e["flags"], e["method"], 33 << 16, e["crc"], e["stored"], e["size"])
        body += b"PK\3\4\24\0" + facts + struct.pack("<HH", len(local), 0) + local + e["payload"]
        sizes = struct.pack("<HHHHHII", len(name), len(e["extra"]), 0, 0, 0, 0, offset)
        directory += b"PK\1\2\24\0\24\0" + facts + sizes + name + e["extra"]
    end = dict(disk=0, count=len(entries), size=len(directory), offset=len(body)) | claims
    return body + directory + end_record(**end)


def end_record(disk, count, size, offset):
    return struct.pack("<IHHHHIIH", 0x06054B50, disk, disk, count, count, size, offset, 0)


def extra64(*sizes):
    return struct.pack(f"<HH{len(sizes)}Q", 1, 8 * len(sizes), *sizes)


FULL = 2**32 - 1
GOOD = npy(np.ones((1, 2, 1)))
SMALL = zip_file(entry(GOOD))
ZIPS = {
    "empty": b"",
    "text": b"this is no zip file, although it is long enough to be one",
    "no_entries": zip_file(),
    "count_high": zip_file(entry(GOOD), count=2),
    "count_full": zip_file(entry(GOOD), count=2**16 - 1),
    "count_low": zip_file(entry(GOOD), entry(npy(ONES), "x_a.npy"), count=0),
    "directory_beyond": zip_file(entry(GOOD), offset=FULL - 1),
    "directory_full": zip_file(entry(GOOD), offset=FULL, size=FULL, count=2**16 - 1),
    "directory_inside": zip_file(entry(GOOD), offset=0),
    "several_disks": zip_file(entry(GOOD), disk=1),
    "offset_beyond": zip_file(entry(GOOD, offset=10**6)),
    "offset_into_directory": zip_file(entry(GOOD, offset=len(GOOD) + 20)),
    "offset_wrong": zip_file(entry(GOOD, offset=4, stored=100, size=100)),
    "size_beyond": zip_file(entry(GOOD, stored=10**6, size=10**6)),
    "size_wraps": zip_file(entry(GOOD, stored=FULL, size=FULL, extra=extra64(2**64 - 8, 2**64 - 8))),
    "offset_wraps": zip_file(entry(GOOD, offset=FULL, extra=extra64(2**64 - 30))),
    "extra_cut": zip_file(entry(GOOD, stored=FULL, size=FULL, extra=extra64(8, 8)[:-1])),
    "extra_short": zip_file(entry(GOOD, stored=FULL, size=FULL, extra=extra64(8))),
    "extra_none": zip_file(entry(GOOD, stored=FULL, size=FULL)),
    "sizes_differ": zip_file(entry(GOOD, size=len(GOOD) - 1)),
    "overlap": zip_file(entry(GOOD), entry(GOOD, "keys.npy", offset=0)),
    "overlap_partly": zip_file(entry(GOOD, stored=len(GOOD) + 20, size=len(GOOD) + 20), entry(GOOD, "keys.npy")),
    "twice": zip_file(entry(GOOD), entry(GOOD)),
    "encrypted": zip_file(entry(GOOD, flags=1)),
    "method": zip_file(entry(GOOD, method=12)),
    "claims_much": zip_file(entry(GOOD, method=8, size=FULL - 1)),
    "claims_all": zip_file(entry(GOOD, method=8, size=FULL, extra=extra64(2**63))),
    "not_npy": zip_file(entry(GOOD), entry(b"hello", "readme.txt")),
    "only_suffix": zip_file(entry(GOOD), entry(GOOD, ".npy")),
    "no_name": zip_file(entry(GOOD, "")),
    "name_lines": zip_file(entry(GOOD, "to\nkens.npy")),
    "name_not_utf8": zip_file(entry(GOOD, b"\xff\xfe.npy")),
    "locator_beyond": SMALL[:-22] + struct.pack("<IIQI", 0x07064B50, 0, 2**64 - 10, 1) + end_record(0, 1, FULL, FULL),
}
INSIDE = {  # these are about one array, and must say so
    "name_differs": entry(GOOD, local_name="tokenz.npy"),
    "crc": entry(GOOD, crc=1),
    "crc_deflated": entry(GOOD, method=8, crc=1),
    "deflated_short": entry(GOOD, method=8, size=len(GOOD) + 1),
    "deflated_long": entry(GOOD, method=8, size=len(GOOD) - 1),
    "deflated_noise": entry(GOOD, method=8, payload=b"\xff" * len(deflate(GOOD))),
    "no_bytes": entry(b""),
    "no_magic": entry(b"\x92" + GOOD[1:]),
    "version": entry(GOOD[:6] + b"\x09" + GOOD[7:]),
    "header_long": entry(GOOD[:8] + b"\xff\xff" + GOOD[10:]),
    "header_huge": entry(npy_text(b"{}", version=2)[:8] + b"\xff\xff\xff\xff{}"),
    "data_short": entry(GOOD[:-1]),
    "data_long": entry(GOOD + b"\0"),
}
HEADERS = {
    "shape_huge": ("'<f8'", "False", "(4611686018427387904, 4, 1)"),
    "shape_wraps": ("'<f8'", "False", "(2305843009213693952, 1, 1)"),
    "shape_wraps_to_fit": ("'<f8'", "False", "(4294967296, 4294967297, 1)"),
    "shape_beyond_int": ("'<f8'", "False", "(99999999999999999999, 1, 1)"),
    "shape_negative": ("'<f8'", "False", "(-1, -1, 1)"),
    "shape_float": ("'<f8'", "False", "(1.0, 1, 1)"),
    "shape_none": ("'<f8'", "False", "None"),
    "shape_long": ("'<f8'", "False", "(" + "1, " * 40 + ")"),
    "shape_open": ("'<f8'", "False", "(1, 1, 1"),
    "shape_zero_huge": ("'<f8'", "False", "(0, 9223372036854775807, 9223372036854775807)"),
    "order": ("'<f8'", "0", "(1, 1, 1)"),
    "type_empty": ("''", "False", "(1, 1, 1)"),
    "type_unknown": ("'<f9'", "False", "(1, 1, 1)"),
    "type_long": ("'<f16'", "False", "(1, 1, 1)"),
    "type_endless": ("'<f8", "False", "(1, 1, 1)"),
    "type_lines": ("'\n\x1b[2J'", "False", "(1, 1, 1)"),
}


@pytest.mark.parametrize("name", ZIPS)
def test_zip(refused_bytes, name):
    refused_bytes(ZIPS[name])


@pytest.mark.parametrize("name", INSIDE)
def test_entry(refused_bytes, name):
    refused_bytes(zip_file(INSIDE[name]), ": tokens: ")


@pytest.mark.parametrize("name", HEADERS)
def test_npy_header(refused_bytes, name):
    text = "{'descr': %s, 'fortran_order': %s, 'shape': %s, }" % HEADERS[name]
    refused_bytes(zip_file(entry(npy_text(text.encode(), bytes(8)))), "tokens")


@pytest.mark.parametrize("text", [
    "", "{", "{}", "[]", "{'descr': '<f8'}", "{'descr': '<f8', 'descr': '<f8'}", "{'a\nb': 1}", "{" * 9999, "\0" * 99,
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1, 1)} 7"])
def test_npy_header_grammar(refused_bytes, text):
    refused_bytes(zip_file(entry(npy_text(text.encode(), bytes(8)))), ": tokens: npy header")


def test_every_prefix(refused_bytes, attsvm, tmp_path):
    for length in range(len(SMALL)):
        refused_bytes(SMALL[:length])
    (tmp_path / "whole.npz").write_bytes(SMALL)
    assert attsvm("info", tmp_path / "whole.npz").code == 0


@pytest.mark.parametrize("change", [0x01, 0x80, 0xFF])
def test_every_byte(attsvm, tmp_path, change):
    path = tmp_path / "task.npz"
    payload = SMALL.index(GOOD)
    for at in range(len(SMALL)):
        path.write_bytes(SMALL[:at] + bytes([SMALL[at] ^ change]) + SMALL[at + 1:])
        result = attsvm("info", path, "--json")
        assert result.code == 2 or result.code == 0 and not payload <= at < payload + len(GOOD), (at, result)
        if result.code == 2:
            assert result.out == "" and len(result.err.splitlines()) == 1 and str(path) in result.err, (at, result)


@pytest.mark.parametrize("tokens, message", [(2, "shape (1,2,1)"), (1 << 26, "memory")])
def test_bomb(refused_bytes, tokens, message):
    """Half a gigabyte of zeros: refused before it is inflated where the header does not announce it all."""
    header = npy_text(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, %d, 1)}" % tokens)
    coder = zlib.compressobj(9, wbits=-15)
    start = coder.compress(header) + coder.flush(zlib.Z_FULL_FLUSH)
    mebibyte = coder.compress(bytes(1 << 20)) + coder.flush(zlib.Z_FULL_FLUSH)
    payload = start + mebibyte * 512 + coder.flush()
    bomb = entry(GOOD, method=8, payload=payload, stored=len(payload), size=len(header) + (512 << 20))
    refused_bytes(zip_file(bomb), ": tokens: ", message)


# --- what is no file at all ---

def test_missing(refused, tmp_path):
    refused(tmp_path / "none.npz", "cannot open")
    refused(tmp_path / "none" / "none.safetensors", "cannot open")


@pytest.mark.parametrize("name, words", [("folder.npz", "a folder is a task if attsvm split has made one of it"),
                                         ("folder.safetensors", "not a regular file")])
def test_folder(refused, tmp_path, name, words):
    (tmp_path / name).mkdir()
    refused(tmp_path / name, words)


@pytest.mark.parametrize("name", ["pipe.npz", "pipe.safetensors"])
def test_pipe(refused, tmp_path, name):
    os.mkfifo(tmp_path / name)
    refused(tmp_path / name, "not a regular file")


def test_device(refused):
    refused("/dev/zero", "not a regular file")


def test_threads_that_cannot_start(attsvm, task_file):
    """attsvm neither hangs nor reports an internal error."""
    result = attsvm("info", task_file(tokens=TOKENS), "--threads", 1000, memory=400 << 20, timeout=20)
    assert result.code in (0, 2), result


# --- safetensors ---

def tensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype="F32", shape=(2,), offsets=(0, 8), **more):
    return dict(dtype=dtype, shape=shape, data_offsets=offsets, **more)


EIGHT = bytes(8)
TENSOR_FILES = {
    "empty": b"",
    "short": b"\2\0\0",
    "length_beyond": tensors({"w": tensor()}, EIGHT, length=10**6),
    "length_full": tensors({"w": tensor()}, EIGHT, length=2**64 - 1),
    "length_wraps": tensors({"w": tensor()}, EIGHT, length=2**64 - 8),
    "length_zero": tensors({"w": tensor()}, EIGHT, length=0),
    "length_short": tensors({"w": tensor()}, EIGHT, length=20),
    "not_json": tensors(b"hello"),
    "not_utf8": tensors(b'{"\xff": 1}'),
    "nul": tensors(b"{}\0"),
    "not_object": tensors([1, 2]),
    "deep": tensors(b"[" * 100_000),
    "deep_objects": tensors(b'{"a":' * 100_000),
    "twice": tensors(b'{"w": %b, "w": %b}' % ((json.dumps(tensor()).encode(),) * 2), EIGHT),
    "twice_lines": tensors(b'{"w\\n": 1, "w\\n": 1}'),
    "twice_inside": tensors(b'{"w": {"dtype": "F32", "dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}', EIGHT),
    "overlap": tensors({"a": tensor(), "b": tensor(offsets=(4, 12))}, bytes(12)),
    "same_place": tensors({"a": tensor(), "b": tensor()}, EIGHT),
    "metadata": tensors({"__metadata__": 3}),
}
TENSORS = {
    "no_object": [1],
    "no_shape": {"dtype": "F32", "data_offsets": [0, 8]},
    "extra_key": tensor(note=1),
    "dtype_unknown": tensor("F31"),
    "dtype_number": tensor(32),
    "dtype_lines": tensor("F\n32"),
    "shape_negative": tensor(shape=(-2,)),
    "shape_negative_twice": tensor(shape=(-2, -1)),
    "shape_float": tensor(shape=(2.0,)),
    "shape_text": tensor(shape=("2",)),
    "shape_huge": tensor(shape=(2**64,)),
    "shape_wraps": tensor(shape=(2**32, 2**32)),
    "shape_wraps_to_fit": tensor(shape=(2**62, 4, 2)),
    "shape_long": tensor(shape=(1,) * 40),
    "shape_number": tensor(shape=2),
    "size_small": tensor(shape=(1,)),
    "size_large": tensor(shape=(3,)),
    "offsets_beyond": tensor(shape=(4,), offsets=(0, 16)),
    "offsets_back": tensor(offsets=(8, 0)),
    "offsets_negative": tensor(offsets=(-8, 0)),
    "offsets_huge": tensor(offsets=(2**64 - 8, 2**64)),
    "offsets_float": tensor(offsets=(0.0, 8.0)),
    "offsets_one": tensor(offsets=(0,)),
    "offsets_three": tensor(offsets=(0, 8, 8)),
}


@pytest.mark.parametrize("name", TENSOR_FILES)
def test_safetensors(refused_bytes, name):
    refused_bytes(TENSOR_FILES[name], name="model.safetensors")


@pytest.mark.parametrize("name", TENSORS)
def test_tensor(refused_bytes, name):
    refused_bytes(tensors({"w": TENSORS[name]}, EIGHT), "tensor 'w'", name="model.safetensors")


def test_tensor_name_of_two_lines(refused_bytes):
    refused_bytes(tensors({"w\n\x1b[2J": tensor("F31")}, EIGHT), name="model.safetensors")


def test_safetensors_prefixes(refused_bytes):
    whole = tensors({"w": tensor()}, EIGHT)
    for length in range(len(whole)):
        refused_bytes(whole[:length], name="model.safetensors")
