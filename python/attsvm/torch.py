"""Attention heads of PyTorch models: for `attsvm.audit`, and watched while they train. Imported on first use.

>>> import attsvm.torch, torch
>>> _ = torch.manual_seed(0)
>>> layer = torch.nn.TransformerEncoderLayer(d_model=16, nhead=4, batch_first=True).eval()
>>> heads = attsvm.torch.heads_from(layer, torch.randn(8, 10, 16))
>>> len(heads), bool(heads.difference.max() < 1e-6)
(4, True)
>>> attsvm.audit(heads, nulls=0)
Audit(heads=4, complete=True)
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Sequence

import torch

from ._heads import Heads
from ._torch_capture import Capture, Seen, call, recompute, wide
from ._torch_collect import Collected, ids_and_mask
from ._torch_monitor import Monitor, monitor, scalars_to

__all__ = ["Monitor", "heads_from", "heads_from_cache", "monitor", "scalars_to"]


def heads_from(model: torch.nn.Module, inputs: Any, *, text: Sequence[Sequence[str]] | None = None,
               query_text: Sequence[Sequence[str]] | None = None, layers: str | Iterable[str] | None = None,
               separators: Iterable[str] = (), tolerance: float | None = None) -> Heads:
    """The keys and queries of every attention head of a model, seen while it reads the inputs.

    Works with whatever ends in softmax(scale · Q Kᵀ + mask) or in torch's fused attention: nn.MultiheadAttention,
    separate or fused projections, grouped queries, rotary positions, biases, norms of queries and keys, causal, padding
    and other masks. The model runs as it is, in eval mode, on its own device, once per batch, without gradients.
    float16 and bfloat16 are converted to float32. While the model runs, only one layer's attention is in memory.

    Parameters
    ----------
    model : torch.nn.Module
    inputs : what the model is called with, or a list of such batches
        A tensor, a tuple of positional arguments, or a dict of keyword arguments (what tokenizers return).
    text : list of lists of str, optional
        The tokens of each sequence as words. Tokens beyond the end of a list are padding. Without it, equal `input_ids`
        are the same word.
    query_text : list of lists of str, optional
        Cross attention: the query tokens.
    layers : str or list of str, optional
        Names of modules as in `model.named_modules()`; those inside them count too. Hook names of TransformerLens, such
        as "blocks.0.attn.hook_q", stand for the module they are in. Default: all. All must read the same tokens.
    separators : list of str
        Words that are sinks besides the first token of each sequence, such as "[SEP]".
    tolerance : float, optional
        Largest difference from the model's own attention. Default: 1e-9 for float64, 1e-4 for float32, 0.05 below.

    Returns
    -------
    Heads
        `difference` is the largest difference between attention recomputed in double from what was extracted and the
        model's own; for fused attention, between the outputs, in units of the largest value.

    ValueError if the difference exceeds the tolerance. That happens if something is added to the logits (ALiBi, relative
    positions, soft caps): no product of keys and queries holds it.
    """
    wanted = _named(layers)
    batches = inputs if isinstance(inputs, list) else [inputs]
    collected = Collected(tolerance)
    if model.training:
        raise ValueError("the model is in training mode, where dropout changes what it reads; call model.eval() first")
    for batch in batches:
        args, kwargs = call(batch)
        given, ids, mask = ids_and_mask(args, kwargs)
        collected.begin(ids, mask, text)
        with torch.no_grad(), Capture(model, collected.add, wanted, None if given is None else given.shape[0]):
            model(*args, **kwargs)
    if not collected.layers:
        raise ValueError("no attention was seen" + (f" in {layers}" if layers is not None else "") + ": a softmax of a "
                         "product, or torch's fused attention; kernels of other packages cannot be seen "
                         '(Hugging Face: attn_implementation="eager")')
    return collected.heads(text, query_text, set(separators))


def heads_from_cache(cache: Mapping[str, torch.Tensor], *, scale: float | None = None, causal: bool = True,
                     text: Sequence[Sequence[str]] | None = None, separators: Iterable[str] = (),
                     tolerance: float | None = None) -> Heads:
    """The heads in a TransformerLens cache: blocks.L.attn.hook_q and hook_k, or hook_rot_q and hook_rot_k.

    Parameters
    ----------
    cache : mapping of names to tensors (batch, position, head, d)
        If blocks.L.attn.hook_attn_scores is there, it tells what is masked; if blocks.L.attn.hook_pattern is there, the
        recomputed attention is compared with it.
    scale : float, optional
        What the logits are multiplied by. Default: 1/√d.
    causal : bool
        The mask, where the cache has no scores.
    text, separators, tolerance : as in `heads_from`

    >>> import torch
    >>> cache = {f"blocks.0.attn.hook_{name}": torch.randn(1, 5, 2, 4) for name in "qk"}
    >>> heads_from_cache(cache).names
    ['0.0', '0.1']
    """
    collected = Collected(tolerance)
    collected.begin(None, None, text)
    for layer in sorted(int(name.split(".")[1]) for name in cache if name.endswith("attn.hook_q")):
        place = f"blocks.{layer}.attn"
        queries, keys = (wide(cache[f"{place}.hook_rot_{one}"] if f"{place}.hook_rot_{one}" in cache
                              else cache[f"{place}.hook_{one}"]).transpose(1, 2) for one in "qk")
        keys = keys.repeat_interleave(queries.shape[1] // keys.shape[1], 1)
        queries = queries * (queries.shape[-1] ** -0.5 if scale is None else scale)
        visible = torch.ones(*queries.shape[:3], keys.shape[2], dtype=torch.bool)
        scores, own = cache.get(f"{place}.hook_attn_scores"), cache.get(f"{place}.hook_pattern")
        if scores is not None:
            visible = scores.gt(-1e3)
        elif causal:
            visible = visible.tril()
        difference = torch.full((queries.shape[1],), torch.nan)
        if own is not None:
            difference = (recompute(queries, keys, visible) - own).abs().amax((0, 2, 3))
        collected.add(Seen(place, queries, keys, visible, difference, cache[f"{place}.hook_q"].dtype))
    if not collected.layers:
        raise ValueError("cache has no blocks.L.attn.hook_q")
    return collected.heads(text, None, set(separators))


def _named(layers: str | Iterable[str] | None) -> Any:
    """A function that says whether a module's name is one of `layers`, or inside one."""
    if layers is None:
        return lambda name: True
    asked = [layers] if isinstance(layers, str) else list(layers)
    names = [name.rpartition(".")[0] if name.rpartition(".")[2].startswith("hook_") else name for name in asked]
    return lambda name: any(name == one or name.startswith(one + ".") for one in names)
