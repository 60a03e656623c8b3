#!/usr/bin/env python3
"""Writes the seed corpus: small valid files of every shape the readers know. Same bytes every time."""

import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent / "corpus"
ENDINGS = {"heads": "npz", "verify": "bin"}  # of folders that are not called like their files


def ramp(*shape, dtype="<f8"):
    """Numbers that are different, finite and exact in every float type."""
    size = int(np.prod(shape))
    return ((np.arange(size) * 7 % 32 - 15) / 8).reshape(shape).astype(dtype)


def npy(array, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asanyarray(array), version=version, allow_pickle=False)
    return out.getvalue()


def npz(deflate=False, zip64=False, **arrays):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
            with archive.open(entry, "w", force_zip64=zip64) as file:
                file.write(npy(array))
    return out.getvalue()


def wide(data):
    """The zip file with every size and place moved to its ZIP64 records."""
    end = data.rindex(b"PK\5\6")
    count, size, begin = struct.unpack_from("<HII", data, end + 10)
    directory, at = b"", begin
    for _ in range(count):
        stored, whole, name, extra = struct.unpack_from("<IIHH", data, at + 20)
        offset, = struct.unpack_from("<I", data, at + 42)
        directory += data[at:at + 20] + struct.pack("<IIHH", 2**32 - 1, 2**32 - 1, name, 28) + data[at + 32:at + 42]
        directory += struct.pack("<I", 2**32 - 1) + data[at + 46:at + 46 + name]
        directory += struct.pack("<HHQQQ", 1, 24, whole, stored, offset)
        at += 46 + name + extra
    record = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, len(directory), begin)
    locator = struct.pack("<IIQI", 0x07064B50, 0, begin + len(directory), 1)
    last = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 2**16 - 1, 2**16 - 1, 2**32 - 1, 2**32 - 1, 0)
    return data[:begin] + directory + record + locator + last


def tasks():
    tokens, queries = ramp(2, 3, 2), ramp(2, 2)
    ragged = dict(tokens=ramp(5, 2), offsets=np.array([0, 2, 5]))
    everything = dict(**ragged, keys=ramp(5, 3), query_token=np.array([0, 1, 2]), sequence=np.array([0, 1, 1]),
                      visible=np.array([1, 2, 3]), labels=np.array([1, -1, 1]), head=ramp(2),
                      select=np.array([0, 1, 2]))
    mask = np.array([[True, False, True], [False, True, False]])
    yield "prompt", npz(tokens=tokens)
    yield "prompt_shared", npz(tokens=ramp(1, 3, 2), sequence=np.array([0, 0]), labels=np.array([1.0, -1.0]))
    yield "cross_deflated", npz(deflate=True, tokens=tokens, queries=queries, head=ramp(2), select=np.array([0, 2]))
    yield "self_ragged", npz(**everything)
    yield "self_ragged_deflated", npz(deflate=True, **everything)
    yield "causal", npz(tokens=ramp(1, 3, 2), query_token=np.array([0, 1, 2], "<i4"), sequence=np.zeros(3, "<u2"),
                        visible=np.array([1, 2, 3], "i1"))
    yield "masked", npz(tokens=ramp(2, 3, 2), visible=mask, select=np.array([2, 1]), head=ramp(2))
    yield "fortran", npz(tokens=np.asfortranarray(tokens), queries=np.asfortranarray(queries), select=mask)
    yield "big_endian", npz(tokens=tokens.astype(">f8"), queries=queries.astype(">f4"), select=np.array([1, 0], ">i8"))
    yield "halves", npz(tokens=tokens.astype("<f2"), keys=ramp(2, 3, 1, dtype="<f4"), labels=np.array([1, -1], "i1"))
    yield "integers", npz(tokens=np.arange(12, dtype="u1").reshape(2, 3, 2), queries=np.eye(2, dtype=">i2"))
    yield "bias", npz(tokens=ramp(2, 3, 2), visible=mask, bias=ramp(2, 3), head=ramp(2))
    yield "head_hidden", npz(tokens=tokens, head_hidden=ramp(2, 3), head=ramp(3))
    yield "head_hidden_ones", npz(deflate=True, tokens=tokens, head_hidden=np.asfortranarray(ramp(2, 3)), select=mask)
    yield "head_quadratic", npz(tokens=tokens, head=ramp(2), head_quadratic=np.float64(0.5), x_note=np.array(3))
    yield "score_overflow", npz(tokens=np.full((1, 2, 2), 1e308), head=np.array([1e308, -1e308]))
    rows = dict(row_query=np.array([0, 1]), row_keep=np.array([0, 1]), row_drop=np.array([1, 0]), row_equal=np.zeros(2, bool))
    yield "solution", npz(W=ramp(2, 2), **rows, rhs=np.ones(2), slack=ramp(2), dual=ramp(2), status=np.array("optimal"), norm=np.array("fro"),
                          problem=np.array("att"), tolerance=np.float64(1e-8), objective=np.float64(1), dual_objective=np.float64(1),
                          select=np.eye(2, dtype=bool), relax=np.zeros(2, bool))
    yield "solution_w", npz(deflate=True, W=ramp(2, 2), norm=np.array("fro"), select=np.eye(2, dtype=bool), relax=np.zeros(2, bool))
    yield "zip64_local", npz(zip64=True, tokens=tokens, queries=queries)
    yield "zip64", wide(npz(deflate=True, tokens=tokens, select=mask))


def head_files():
    keys, queries = ramp(1, 6, 2), ramp(2, 6, 2)[:, ::-1]
    several = dict(offsets=np.array([0, 2, 6]), sequence=np.array([0, 0, 1, 1, 1, 1]), position=np.array([0, 1, 0, 1, 2, 3]))
    words = np.array(["a", "b", "a", "\U0001f600", "", "b"])
    mask = np.tril(np.ones((6, 4), bool))
    yield "plain", npz(keys=keys, queries=queries[:1])
    yield "self", npz(keys=keys, queries=queries, key_head=np.array([0, 0]), **several, text=words)
    yield "causal", npz(deflate=True, keys=keys.astype("<f2"), queries=queries.astype("<f4"), key_head=np.zeros(2, "u1"), **several,
                        visible=np.array([1, 2, 1, 2, 3, 4]), layer=np.array([3, 3]), head=np.array([1, 7]))
    yield "masked", npz(keys=keys, queries=queries[:1], **several, visible=mask, sink=np.zeros(6, bool), text=words)
    yield "masked_heads", npz(keys=ramp(2, 6, 2), queries=queries, **several, visible=np.array([mask, ~mask]))
    yield "cross", npz(keys=keys, queries=queries[:1, :3], query_text=words[:3], text=words, ids=np.array([1, 2, 1, -4, 5, 2]),
                       difference=np.array([1e-7]))
    yield "fortran", npz(keys=np.asfortranarray(ramp(2, 6, 2)), queries=np.asfortranarray(queries).astype(">f8"),
                         sink=np.eye(6, dtype=bool)[2], x_note=np.array(3))
    yield "coinciding", npz(keys=np.zeros((1, 4, 1)), queries=np.ones((1, 2, 1)))
    yield "huge", npz(keys=np.full((1, 3, 2), 1e300), queries=np.full((1, 3, 2), -1e300))


def arrays():
    for code in ("<f8", ">f8", "<f4", "<f2", "<i8", ">i4", "<u2", "|i1"):
        yield code.strip("<>|") + ("_big" if code[0] == ">" else ""), npy(np.abs(ramp(3, 2)).astype(code))
    yield "bool", npy(np.array([[True, False], [False, True]]))
    yield "fortran", npy(np.asfortranarray(ramp(2, 3, 2)))
    yield "scalar", npy(np.float64(1.5))
    yield "empty", npy(np.zeros((0, 3)))
    yield "nonfinite", npy(np.array([1.0, np.nan, np.inf]))
    yield "version2", npy(ramp(4), version=(2, 0))
    yield "version3", npy(ramp(4), version=(3, 0))


def safetensors(tensors, metadata=None, padding=0):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, shape, numbers) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header, separators=(",", ":")).encode() + b" " * padding
    return struct.pack("<Q", len(text)) + text + data


def tensor_files():
    codes = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
             "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?"}
    plain = {name.lower(): (name, [2, 3], np.abs(ramp(2, 3)).astype(code).tobytes()) for name, code in codes.items()}
    bf16 = {"w": ("BF16", [2, 2], (ramp(2, 2, dtype="<f4").view("<u4") >> 16).astype("<u2").tobytes())}
    yield "types", safetensors(plain)
    yield "bf16", safetensors(bf16)
    halves = {"h": ("F16", [4], ramp(4, dtype="<f2").tobytes())}
    yield "f16_metadata", safetensors(halves, {"format": "pt", "k": "é\n"})
    yield "unaligned", safetensors({"b": ("U8", [3], b"abc"), "x": ("F64", [2], ramp(2).tobytes())})
    yield "padded", safetensors(bf16, padding=5)
    yield "scalar", safetensors({"s": ("F32", [], ramp(1, dtype="<f4").tobytes())})
    yield "empty_tensor", safetensors({"e": ("F32", [0, 4], b""), "f": ("I8", [1], b"\1")})
    yield "empty_huge", safetensors({"z": ("U8", [2**62, 2, 0], b"")})
    yield "empty", safetensors({})
    yield "names", safetensors({"model.layers.0.q_proj.weight": ("F32", [1], b"\0\0\200?"), "": ("U8", [1], b"1")})
    yield "nonfinite", safetensors({"n": ("F32", [2], np.array([np.nan, np.inf], "<f4").tobytes())})


def documents():
    texts = {
        "object": '{"a": 1, "b": [true, false, null], "c": {"a": "x"}}',
        "numbers": "[0, -1, 1.5e300, 1e-320, 18446744073709551615]",
        "huge": "[1e999]",
        "strings": r'["\u00e9\ud83d\ude00", "\n\t\\\"", "é"]',
        "surrogate": r'"\ud800"',
        "twice": '{"k": 1, "k": 2}',
        "twice_lines": r'{"k\n": 1, "k\n": 2}',
        "cut": '{"a": [1, 2',
        "deep": "[" * 64 + "]" * 64,
        "deeper": "[" * 65 + "]" * 65,
        "spaces": " \t\r\n{}\n",
        "comment": "[1] // no",
        "word": "true",
        "header": '{"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}',
    }
    for name, text in texts.items():
        yield name, text.encode()
    yield "zero_byte", b"{}\0{"
    yield "not_utf8", b'["\xff\xfe"]'


def forgeries():
    for case in range(15):  # the problems of fuzz_verify, each with one number doubled
        yield f"case{case:02}", bytes([case, 0, 5, 0, 1, 0, 2])


for folder, files in {"npz": tasks(), "heads": head_files(), "npy": arrays(), "safetensors": tensor_files(), "json": documents(), "verify": forgeries()}.items():
    (HERE / folder).mkdir(parents=True, exist_ok=True)
    for name, data in files:
        (HERE / folder / f"{name}.{ENDINGS.get(folder, folder)}").write_bytes(data)
