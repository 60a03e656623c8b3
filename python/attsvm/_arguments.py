"""Checks arguments and converts them to the form that the C++ module takes."""

from __future__ import annotations

import operator
from typing import Any, Iterable

import numpy as np
from numpy.typing import NDArray

from ._types import Floats

_CPU_DEVICES = (1, 3, 13)  # DLPack's main memory, pinned and managed
_KINDS = "fiub"


def _is_tensor(kind: type) -> bool:
    return hasattr(kind, "__dlpack_device__") and not issubclass(kind, (np.ndarray, np.generic))


def _from_tensor(value: Any, name: str) -> NDArray[Any]:
    """A tensor that supports DLPack (PyTorch, JAX, …), without a copy unless NumPy lacks its type."""
    try:
        device = value.__dlpack_device__()[0]
    except ValueError as error:
        raise TypeError(f"{name} cannot be read as an array: {error}") from None
    if device not in _CPU_DEVICES:
        raise TypeError(f"{name} is on another device; must be in main memory (for a torch tensor: {name}.cpu())")
    detach = getattr(value, "detach", None)
    value = detach() if detach else value
    try:
        if str(value.dtype) == "torch.bool":  # which DLPack knows only lately
            return np.from_dlpack(value.byte()).view(bool)
        if str(value.dtype).endswith("bfloat16"):  # all of whose numbers float32 has
            value = value.float() if hasattr(value, "float") else value.astype("float32")
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"{name} cannot be read as an array: {error}") from None


def _entries(value: Any, name: str) -> Any:
    """Lists with tensors or masked arrays in them, entry by entry: NumPy reads no tensor that requires a gradient, and
    drops masks."""
    kinds: set[type] = {type(one) for one in value}
    if any(_is_tensor(kind) or issubclass(kind, (list, tuple, np.ma.MaskedArray)) for kind in kinds):
        return [_entries(one, f"{name}[{k}]") if isinstance(one, (list, tuple)) else
                array(one, f"{name}[{k}]") if _is_tensor(type(one)) or isinstance(one, np.ndarray) else one
                for k, one in enumerate(value)]
    return value


def array(value: Any, name: str, *, integers: bool = False) -> NDArray[Any]:
    """A C-ordered array in this machine's byte order; `value` itself, or a view of it, if it is one already.

    TypeError names the argument where it does not hold real numbers (`integers`: integers).
    """
    if type(value) is not np.ndarray:
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"{name} is a masked array, and masked numbers have no meaning here; give {name}.filled(…) "
                            "or leave out what is masked")
        if _is_tensor(type(value)):
            value = _from_tensor(value, name)
        else:
            value = _entries(value, name) if isinstance(value, (list, tuple)) else value
            try:
                value = np.asarray(value)
            except ValueError as error:
                raise ValueError(f"{name} is not an array: {error}") from None
    if value.dtype.kind == "V" and value.dtype.name == "bfloat16":  # of the package ml_dtypes
        value = value.astype(np.float32)
    dtype = value.dtype
    if dtype.kind == "O":
        raise TypeError(f"{name} has dtype object; must be real numbers (sequences of different lengths: a list of "
                        "matrices, or one matrix (N,d) with offsets)")
    if dtype.kind not in _KINDS or dtype.itemsize > 8:
        raise TypeError(f"{name} has dtype {dtype}; must be real numbers of at most 64 bits")
    if integers and dtype.kind not in "iu" and value.size:
        raise TypeError(f"{name} has dtype {dtype}; must be integers")
    if value.size == 0:
        raise ValueError(f"{name} has shape {value.shape}; every size must be at least 1")
    flags = value.flags
    if not flags.c_contiguous or not flags.aligned or not dtype.isnative:
        value = np.require(value, dtype.newbyteorder("="), ["C", "A"])
    checked: NDArray[Any] = value
    return checked


def weights(value: Any, name: str) -> Floats:
    """W of a solution or run, or the matrix itself; a vector is one column."""
    matrix: Floats = np.asarray(array(getattr(value, "W", value), name), np.float64)
    return matrix.reshape(-1, 1) if matrix.ndim == 1 else matrix


def number(value: Any, name: str) -> float:
    if isinstance(value, float):
        return value
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} = {value!r}; must be a number") from None


def positive(value: Any, name: str) -> float:
    """A limit or size that may be left out: None is 0."""
    if value is None:
        return 0.0
    result = number(value, name)
    if not result > 0:
        raise ValueError(f"{name} = {value}; must be above 0")
    return result


def integer(value: Any, name: str, least: int = 0, most: int = 2**63 - 1) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        whole: Any = int(value) if isinstance(value, float) and value.is_integer() else value
        result = operator.index(whole)
    except TypeError:
        raise TypeError(f"{name} = {value!r}; must be an integer") from None
    if not least <= result <= most:
        bound = f" and at most {most}" if result > most else ""
        raise ValueError(f"{name} = {value}; must be at least {least}{bound}")
    return result


def seed(value: Any) -> int:
    return integer(value, "seed", 0, 2**64 - 1)


def threads(value: int | None) -> int:
    return 0 if value is None else integer(value, "threads", 1, 1024)


def device(value: Any) -> str:
    if value not in ("auto", "cpu", "cuda"):
        raise ValueError(f'device = {value!r}; must be "auto", "cpu" or "cuda"')
    return str(value)


def word(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} = {value!r}; must be a str")
    return value


def norm(value: Any) -> str:
    """fro, nuc, spec, max, l1, lp:3 or ("lp", 3), schatten:3 or ("schatten", 3) as the command line writes it."""
    if type(value) is str:
        return value
    if isinstance(value, tuple) and len(value) == 2 and value[0] in ("lp", "schatten"):
        return f"{value[0]}:{number(value[1], 'norm')!r}"
    raise TypeError(f'norm = {value!r}; must be "fro", "nuc", "spec", "max", "l1", ("lp", P) or ("schatten", P)')


def norms(value: Any) -> list[str]:
    """Of one norm, or a list of them."""
    one = isinstance(value, str) or (isinstance(value, tuple) and len(value) == 2 and value[0] in ("lp", "schatten"))
    return [norm(each) for each in ([value] if one else list(value))]


def penalties(value: Any) -> list[float]:
    """Of a soft margin: one for all queries or one each; None is none."""
    if value is None:
        return []
    given = np.atleast_1d(np.asarray(array(value, "soft"), np.float64))
    if given.ndim != 1:
        raise ValueError(f"soft has shape {given.shape}; must be one penalty, or one per query")
    return [float(penalty) for penalty in given]


def queries(value: Any, count: int, name: str) -> list[int]:
    """Numbers of queries; a mask (q,) of bool, such as a solution's `relax`, names those that are set."""
    if value is None or (hasattr(value, "__len__") and len(value) == 0):
        return []
    given = array(sorted(value) if isinstance(value, (set, frozenset)) else value, name)
    if given.ndim != 1 or (given.dtype == bool and len(given) != count):
        raise ValueError(f"{name} has shape {given.shape}; must be ({count},), one bool per query, or a list of queries")
    return [integer(i, name) for i in (np.flatnonzero(given) if given.dtype == bool else given).tolist()]


def selection(select: Any, longest: int) -> Any:
    """None and words unchanged; tokens (q) or a mask (q,T) as an array; one set of tokens per query as a mask."""
    if select is None or isinstance(select, str):
        return select
    if isinstance(select, (list, tuple)) and any(isinstance(one, (set, frozenset, list, tuple)) for one in select):
        rows = [sorted(one) if isinstance(one, (set, frozenset)) else np.atleast_1d(one).tolist() for one in select]
        if not all(len(row) == longest and all(isinstance(flag, bool) for flag in row) for row in rows):
            mask = np.zeros((len(rows), longest), bool)
            for i, row in enumerate(rows):
                for token in row:
                    t = integer(token, f"select[{i}]")
                    if t >= longest:
                        raise ValueError(f"select[{i}] = {t}; must be below {longest}")
                    mask[i, t] = True
            return mask
    chosen = array(select, "select")
    if chosen.dtype.kind == "f":
        raise TypeError(f"select has dtype {chosen.dtype}; must be integers (tokens) or bool (a mask)")
    return chosen


def names(given: Iterable[Any]) -> list[str]:
    """The words of f("a", "b") and of f(["a", "b"]) alike."""
    words: list[str] = []
    for one in given:
        words += [one] if isinstance(one, str) else [word(each, "name") for each in one]
    return words
