# mypy: disable-error-code="no-untyped-call, no-any-return, unused-ignore"
# Of PyTorch's calls only some have types, and which ones depends on its release.
"""Sees what a model multiplies: the queries and keys of every attention while a forward pass runs.

Nothing is rebuilt from weights. Every torch call of the pass is seen, so the operands of the product that a softmax
reads are the model's own: after projection, bias, rotation, normalisation, and whatever else its authors wrote.
"""

from __future__ import annotations

import contextlib
import types
from typing import Any, Callable, Generator, Mapping, NamedTuple

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

_MASKED = -1e3  # models mask with -inf, with the lowest number of their type, or by adding -1e4 or -1e9
_HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "heads", "nhead")
_PRODUCTS = (torch.matmul, torch.bmm, torch.Tensor.matmul, torch.Tensor.bmm, torch.Tensor.__matmul__)
_SOFTMAXES = (F.softmax, torch.softmax, torch.Tensor.softmax)
_FUSED = getattr(F, "scaled_dot_product_attention", None)  # from PyTorch 2.0


class Seen(NamedTuple):
    """One attention of one pass; b sequences, h heads, t queries, s keys of size d."""

    name: str  #: of the innermost module around it
    queries: torch.Tensor  #: (b, h, t, d), times the scale
    keys: torch.Tensor  #: (b, h, s, d)
    visible: torch.Tensor  #: (b, h, t, s) bool
    difference: torch.Tensor  #: (h,): largest difference from the model's own attention
    dtype: torch.dtype  #: that the model multiplied in


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """float16 and bfloat16 as float32."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def call(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments of a model: a tensor, a tuple, or a mapping such as tokenizers return."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    return (inputs if isinstance(inputs, tuple) else (inputs,)), {}


def recompute(queries: torch.Tensor, keys: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
    """The softmax of q·k over what is visible, in double; zero where a query sees nothing."""
    logits = queries.double() @ keys.double().transpose(-1, -2)
    return torch.nan_to_num(torch.softmax(logits.masked_fill(~visible, -torch.inf), -1))


def _matmul(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """(queries, keys) if the call is a product of two tensors, else None."""
    given = [*args, *kwargs.values()]
    if func in _PRODUCTS:
        left, right = given[:2]
    elif func in (torch.baddbmm, torch.Tensor.baddbmm):
        left, right = given[1:3]
    elif func is torch.einsum:
        return _einsum(*given)
    else:
        return None
    return (left, right.transpose(-1, -2)) if min(left.dim(), right.dim()) > 1 else None


def _einsum(equation: Any, *operands: Any) -> Any:
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not isinstance(equation, str) or len(operands) != 2 or "->" not in equation or "." in equation:
        return None
    left, right, out = equation.replace(" ", "").replace("->", ",").split(",")
    inner = [c for c in left if c in right and c not in out]
    if len(out) < 2 or len(inner) != 1:
        return None
    if out[-2] in right and out[-1] in left:
        left, right, operands = right, left, operands[::-1]
    batch, sides = out[:-2], []
    for letters, operand, row in ((left, operands[0], out[-2]), (right, operands[1], out[-1])):
        wanted = [c for c in batch if c in letters] + [row, inner[0]]
        if sorted(wanted) != sorted(letters):
            return None
        side = operand.permute([letters.index(c) for c in wanted])
        lead = [side.shape[wanted.index(c)] if c in letters else 1 for c in batch]
        sides.append(side.reshape([*lead, *side.shape[-2:]]))
    return tuple(sides)


def _entered(func: Any) -> Any:
    """The same Python function, but for the look-out by which it hands itself to a mode as one call."""
    inside = types.FunctionType(func.__code__, {**func.__globals__, "has_torch_function": lambda _: False},
                                func.__name__, func.__defaults__, func.__closure__)
    inside.__kwdefaults__ = func.__kwdefaults__
    return inside


_INSIDE_MULTI_HEAD = _entered(F.multi_head_attention_forward)


class Capture(TorchFunctionMode):
    """While entered, calls report(Seen) for each attention of `model` whose module's name passes wanted(name)."""

    def __init__(self, model: torch.nn.Module, report: Callable[[Seen], Any], wanted: Callable[[str], bool],
                 batch: int | None = None):
        super().__init__()
        self._model, self._report, self._wanted, self._batch = model, report, wanted, batch
        self._stack: list[tuple[str, torch.nn.Module]] = []
        self._hooks: list[Any] = []

    def __enter__(self) -> "Capture":
        for name, module in self._model.named_modules():
            self._hooks.append(module.register_forward_pre_hook(
                lambda module, _, name=name: self._stack.append((name, module))))
            self._hooks.append(module.register_forward_hook(lambda *_: self._leave()))
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        done = super().__exit__(*error)
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._stack = [], []
        return done

    def _leave(self) -> None:
        self._stack.pop()

    def __torch_function__(self, func: Any, types_: Any, args: tuple[Any, ...] = (),
                           kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.multi_head_attention_forward:
            with self._again():
                return _INSIDE_MULTI_HEAD(*args, **kwargs)
        result = func(*args, **kwargs)
        if not self._stack or not isinstance(result, torch.Tensor) or not self._wanted(self._stack[-1][0]):
            return result
        if _FUSED is not None and func is _FUSED:
            with torch.no_grad():
                self._see_fused(result, *args, **kwargs)
            return result
        origin = next((one._attsvm_product for one in args if hasattr(one, "_attsvm_product")), None)
        if func in _SOFTMAXES and origin is not None:
            logits, dim = args[0], kwargs.get("dim", args[1] if len(args) > 1 else None)
            if dim in (-1, logits.dim() - 1):
                with torch.no_grad():
                    self._see(logits, result, *origin)
            return result
        product = _matmul(func, args, kwargs)
        if product is not None:
            result._attsvm_product = product  # type: ignore[attr-defined]
        elif origin is not None and result.is_floating_point() and result.numel() == origin[0].numel() // \
                origin[0].shape[-1] * origin[1].shape[-2]:
            result._attsvm_product = origin  # type: ignore[attr-defined]  # scaled, masked or reshaped logits
        return result

    @contextlib.contextmanager
    def _again(self) -> Generator[None, None, None]:
        """The mode alone, without the hooks that entering it adds."""
        super().__enter__()
        try:
            yield
        finally:
            super().__exit__(None, None, None)

    def _split(self, tensor: torch.Tensor) -> torch.Tensor:
        """(b, h, t, s) of logits whose leading sizes are b and h, both in one, or h in groups."""
        if tensor.dim() == 2:
            return tensor[None, None]
        if tensor.dim() > 3:
            return tensor.flatten(1, -3)
        name, module = self._stack[-1]
        heads = next((getattr(module, one) for one in _HEADS if isinstance(getattr(module, one, None), int)), None)
        if heads is None and self._batch is not None and tensor.shape[0] % self._batch == 0:
            heads = tensor.shape[0] // self._batch
        if heads is None or tensor.shape[0] % heads:
            raise ValueError(f"{name}: its logits have shape {tuple(tensor.shape)}, and nothing says how many heads those "
                             "are; give the module an attribute num_heads")
        return tensor.unflatten(0, (-1, heads))

    def _see(self, logits: torch.Tensor, own: torch.Tensor, queries: torch.Tensor, keys: torch.Tensor) -> None:
        name, shape = self._stack[-1][0], tuple(logits.shape)
        lead = torch.broadcast_shapes(queries.shape[:-2], keys.shape[:-2])
        finer = lead if len(lead) > logits.dim() - 2 else logits.shape[:-2]  # (b, h) rather than (b·h)
        try:
            queries, keys = (self._split(one.expand(*lead, *one.shape[-2:]).reshape(*finer, *one.shape[-2:]))
                             for one in (queries, keys))
            logits, own = (self._split(one.reshape(*finer, *one.shape[-2:])).double() for one in (logits, own))
        except RuntimeError:
            raise ValueError(f"{name}: its logits of shape {shape} are not a product of queries "
                             f"{tuple(queries.shape)} and keys {tuple(keys.shape)}") from None
        self._found(queries, keys, logits, own)

    def _found(self, queries: torch.Tensor, keys: torch.Tensor, logits: torch.Tensor, own: torch.Tensor) -> None:
        """Finds the scale and the mask between q·k and the logits, and compares."""
        dtype, queries, keys = queries.dtype, wide(queries), wide(keys)
        products = queries.double() @ keys.double().transpose(-1, -2)
        seen = (own > 0) & (logits.amax(-1, keepdim=True) > _MASKED)
        above, below = (torch.where(seen, products * one, torch.zeros_like(one)).sum((0, 2, 3), keepdim=True)
                        for one in (logits, products))
        scale = torch.where(below > 0, above / below, torch.ones_like(below))  # of each head
        visible = logits >= scale * products + _MASKED
        queries = (scale * queries.double()).to(queries.dtype)
        off = torch.where(visible.any(-1, keepdim=True), own - recompute(queries, keys, visible), torch.zeros_like(own))
        self._report(Seen(self._stack[-1][0], queries, keys, visible, off.abs().amax((0, 2, 3)), dtype))

    def _see_fused(self, result: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                   attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, scale: Any = None,
                   **_: Any) -> None:
        """The fused function keeps its attention to itself: what it returns is compared, in units of the values."""
        queries, keys, values = (self._split(wide(one)) for one in (query, key, value))
        queries = queries * (queries.shape[-1] ** -0.5 if scale is None else scale)
        keys, values = (one.repeat_interleave(queries.shape[1] // one.shape[1], 1) for one in (keys, values))
        shape = (*queries.shape[:3], keys.shape[2])
        visible = torch.ones(shape[2:], dtype=torch.bool, device=queries.device)
        if is_causal:
            visible = visible.tril()
        if attn_mask is not None:
            visible = visible & (attn_mask if attn_mask.dtype == torch.bool else attn_mask > _MASKED)
        visible = visible.expand(shape)
        again = recompute(queries, keys, visible) @ values.double()
        off = torch.where(visible.any(-1, keepdim=True), self._split(result).double() - again, torch.zeros_like(again))
        difference = (off.abs().amax((0, 2, 3)) / values.abs().max().clamp(min=1e-30)).nan_to_num(torch.inf)
        self._report(Seen(self._stack[-1][0], queries, keys, visible, difference, query.dtype))
