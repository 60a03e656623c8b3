"""Heads extracted from models of every shape attend as the models do, and each mistake would show."""

import gc
import pathlib
import sys

import attsvm
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (Debian: python3-torch)")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import attsvm.torch  # noqa: E402
import tiny_models as tiny  # noqa: E402

WIDTH, HEADS, SEQUENCES, LENGTH = 32, 4, 3, 7
FUSED = hasattr(torch.nn.functional, "scaled_dot_product_attention")  # from PyTorch 2.0

# name: (attention layers, keyword arguments of the call)
SHAPES = {
    "bert": (lambda: [tiny.BertSelfAttention(WIDTH, HEADS) for _ in range(2)], {}),
    "bert, padded": (lambda: [tiny.BertSelfAttention(WIDTH, HEADS) for _ in range(2)], {"attention_mask": (7, 5, 3)}),
    "whisper": (lambda: [tiny.WhisperAttention(WIDTH, HEADS) for _ in range(2)], {"causal": True}),
    "gpt2": (lambda: [tiny.GPT2Attention(WIDTH, HEADS, layer) for layer in range(2)], {}),
    "timm": (lambda: [tiny.TimmAttention(WIDTH, HEADS) for _ in range(2)], {}),
    "llama": (lambda: [tiny.LlamaAttention(WIDTH, HEADS, 2) for _ in range(2)], {}),
    "llama, broadcast": (lambda: [tiny.LlamaAttention(WIDTH, HEADS, 2, repeat=False) for _ in range(2)], {}),
    "neox": (lambda: [tiny.NeoXAttention(WIDTH, HEADS) for _ in range(2)], {}),
    "lens": (lambda: [tiny.HookedAttention(WIDTH, HEADS, first) for first in (False, True)], {}),
}
if FUSED:
    SHAPES["llama, fused"] = (lambda: [tiny.LlamaAttention(WIDTH, HEADS, 2, fused=True) for _ in range(2)], {})


def model_of(shape, dtype=torch.float64):
    """The model, its inputs, and how many tokens of each sequence are real."""
    torch.manual_seed(1)
    make, options = SHAPES[shape]
    model = tiny.Stack(*make()).to(dtype).eval()
    options, lengths = dict(options), [LENGTH] * SEQUENCES
    if "attention_mask" in options:
        lengths = list(options["attention_mask"])
        options["attention_mask"] = (torch.arange(LENGTH) < torch.tensor(lengths)[:, None]).long()
    return model, dict(x=torch.randn(SEQUENCES, LENGTH, WIDTH, dtype=dtype), **options), lengths


def own_attention(model, lengths):
    """What the layers used, (layers·heads, real queries, LENGTH)."""
    maps = []
    for layer in model.layer:
        own = layer["attention"].own.detach().double().numpy()
        maps += [np.concatenate([own[b, h, :n] for b, n in enumerate(lengths)]) for h in range(HEADS)]
    return np.stack(maps)


def attention(heads):
    maps = np.stack([heads.attention(h) for h in range(len(heads))])
    return np.pad(maps, ((0, 0), (0, 0), (0, LENGTH - maps.shape[2])))


def off(heads, expected):
    return np.abs(attention(heads) - expected).max()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype, most", [(torch.float64, 1e-12), (torch.float32, 1e-5)], ids=["double", "single"])
def test_attention_is_the_models_own(shape, dtype, most):
    model, inputs, lengths = model_of(shape, dtype)
    heads = attsvm.torch.heads_from(model, inputs)
    model(**inputs)
    assert len(heads) == 2 * HEADS and heads.names[HEADS] == "1.0"
    assert off(heads, own_attention(model, lengths)) < most
    assert (heads.difference < most).all()
    keys, groups = heads.to_dict()["keys"], heads.to_dict().get("key_head", range(len(heads)))
    for h in range(len(heads)):
        rotated = model.layer[h // HEADS]["attention"].rotated[:, h % HEADS].detach().numpy()
        np.testing.assert_array_equal(keys[groups[h]], np.concatenate([rotated[b, :n] for b, n in enumerate(lengths)]))


@pytest.mark.parametrize("shape", SHAPES)
def test_mistakes_would_show(shape):
    """The comparison above has the power to find each mistake that an extraction can make."""
    model, inputs, lengths = model_of(shape)
    arrays = attsvm.torch.heads_from(model, inputs).to_dict()
    model(**inputs)
    expected = own_attention(model, lengths)
    groups = arrays.get("key_head", np.arange(2 * HEADS))

    def wrong(**changed):
        return off(attsvm.Heads(**{**arrays, **changed}), expected)

    assert wrong() < 1e-12
    assert wrong(queries=arrays["queries"] * 1.5) > 1e-3, "scale"
    assert wrong(queries=arrays["queries"] + np.linspace(-1, 1, WIDTH // HEADS)) > 1e-3, "bias"
    assert wrong(queries=arrays["queries"][::-1].copy()) > 1e-3, "order of heads"
    assert wrong(key_head=groups[::-1].copy()) > 1e-3, "order of key heads"
    assert wrong(keys=np.roll(arrays["keys"], 1, 1)) > 1e-3, "order of tokens"
    if np.asarray(arrays["visible"]).ndim == 2 or len(set(arrays["visible"])) > 1:
        assert wrong(visible=np.repeat(lengths, lengths)) > 1e-3 or len(set(lengths)) > 1, "mask"
    if shape.startswith(("llama", "neox", "lens")):
        layer = model.layer[0]["attention"]
        plain = np.array(arrays["keys"])
        turned = torch.tensor(plain[0].reshape(SEQUENCES, LENGTH, -1))
        plain[0] = tiny.rotate(turned, part=0.5 if isinstance(layer, tiny.NeoXAttention) else 1.0).flatten(0, 1).numpy()
        assert wrong(keys=plain) > 1e-3, "rotation"


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("weights", [True, False])
def test_multihead_attention(batch_first, weights):
    """PyTorch's own module, whose weights are an answer that we had no part in."""
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=batch_first).double().eval()
    torch.nn.init.normal_(layer.in_proj_bias)
    x = torch.randn(SEQUENCES, LENGTH, WIDTH, dtype=torch.float64)
    given = x if batch_first else x.transpose(0, 1)
    padding = torch.arange(LENGTH) >= torch.tensor([7, 4, 6])[:, None]
    causal = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    inputs = dict(query=given, key=given, value=given, key_padding_mask=padding, attn_mask=causal, need_weights=weights)
    heads = attsvm.torch.heads_from(layer, inputs)
    own = layer(**{**inputs, "need_weights": True}, average_attn_weights=False)[1].detach().numpy()
    expected = np.stack([np.concatenate([own[b, h, :n] for b, n in enumerate([7, 4, 6])]) for h in range(HEADS)])
    assert off(heads, expected) < 1e-12 and heads.difference.max() < 1e-12
    # Linear projections by hand, biases included: an answer that no code of PyTorch's attention had part in.
    weight, bias = layer.in_proj_weight.detach().numpy(), layer.in_proj_bias.detach().numpy()
    size = WIDTH // HEADS
    rows = np.concatenate([x[b, :n].numpy() for b, n in enumerate([7, 4, 6])])
    for h in range(HEADS):
        part = slice(h * size, (h + 1) * size)
        np.testing.assert_allclose(heads.to_dict()["queries"][h], (rows @ weight[part].T + bias[part]) / size**0.5, rtol=1e-12)
        part = slice(WIDTH + h * size, WIDTH + (h + 1) * size)
        np.testing.assert_allclose(heads.to_dict()["keys"][h], rows @ weight[part].T + bias[part], rtol=1e-12)


def test_transformer_encoder_is_seen_through_its_fast_path():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True).eval()
    model = torch.nn.TransformerEncoder(layer, 3).eval()
    padding = torch.arange(LENGTH) >= torch.tensor([7, 4, 6])[:, None]
    heads = attsvm.torch.heads_from(model, dict(src=torch.randn(SEQUENCES, LENGTH, WIDTH), src_key_padding_mask=padding))
    assert len(heads) == 3 * HEADS and heads.difference.max() < 1e-5
    assert np.diff(heads.to_dict()["offsets"]).tolist() == [7, 4, 6]


def test_cross_attention():
    torch.manual_seed(0)
    layer = tiny.WhisperAttention(WIDTH, HEADS).double().eval()
    model = torch.nn.ModuleDict({"encoder_attn": layer}).eval()
    model.forward = lambda x, y: layer(x, key_value_states=y)
    x, y = torch.randn(2, 5, WIDTH, dtype=torch.float64), torch.randn(2, 9, WIDTH, dtype=torch.float64)
    asked = [[f"q{t}" for t in range(5)]] * 2
    heads = attsvm.torch.heads_from(model, (x, y), text=[[f"k{t}" for t in range(9)]] * 2, query_text=asked)
    arrays = heads.to_dict()
    assert "position" not in arrays and arrays["query_text"][:2] == ["q0", "q1"] and arrays["text"][9] == "k0"
    own = layer.own.detach().numpy()
    assert heads.difference.max() < 1e-12
    np.testing.assert_allclose(heads.attention(2), own[:, 2].reshape(10, 9), atol=1e-12)
    square = attsvm.torch.heads_from(model, (x, x)).to_dict()
    assert "position" not in square, "the name of the module says that these are two texts"


def test_grouped_keys_are_stored_once():
    for shape in ("llama", "llama, broadcast"):
        arrays = attsvm.torch.heads_from(*model_of(shape)[:2]).to_dict()
        assert arrays["keys"].shape[0] == 4 and arrays["key_head"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_masks_are_kept_as_they_are():
    causal = attsvm.torch.heads_from(*model_of("gpt2")[:2]).to_dict()
    assert causal["visible"].tolist() == [1, 2, 3, 4, 5, 6, 7] * SEQUENCES
    window = attsvm.torch.heads_from(*model_of("neox")[:2]).to_dict()["visible"]
    assert window.shape == (SEQUENCES * LENGTH, LENGTH) and window[6].tolist() == [False] * 4 + [True] * 3
    mixed = tiny.Stack(tiny.NeoXAttention(WIDTH, HEADS, 2), tiny.NeoXAttention(WIDTH, HEADS, 4)).double().eval()
    heads = attsvm.torch.heads_from(mixed, torch.randn(2, LENGTH, WIDTH, dtype=torch.float64))
    assert heads.to_dict()["visible"].shape == (2 * HEADS, 2 * LENGTH, LENGTH)
    np.testing.assert_allclose(heads.attention(HEADS), mixed.layer[1]["attention"].own[:, 0].flatten(0, 1), atol=1e-12)


def test_masks_of_heads_of_one_layer():
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).double().eval()
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)
    near = [torch.ones(LENGTH, LENGTH).tril().triu(-1 - h) == 0 for h in range(HEADS)]  # head h sees h + 2 tokens
    inputs = dict(query=x, key=x, value=x, attn_mask=torch.stack(near * 2), need_weights=False)
    heads = attsvm.torch.heads_from(layer, inputs)
    own = layer(**{**inputs, "need_weights": True}, average_attn_weights=False)[1].detach().numpy()
    assert heads.to_dict()["visible"].shape == (HEADS, 2 * LENGTH, LENGTH)
    for h in range(HEADS):
        np.testing.assert_allclose(heads.attention(h), own[:, h].reshape(2 * LENGTH, LENGTH), atol=1e-12)


def test_left_padding():
    model = tiny.Stack(tiny.BertSelfAttention(WIDTH, HEADS)).double().eval()
    torch.manual_seed(0)
    mask = (torch.arange(LENGTH) >= torch.tensor([0, 3])[:, None]).long()
    heads = attsvm.torch.heads_from(model, dict(x=torch.randn(2, LENGTH, WIDTH, dtype=torch.float64), attention_mask=mask))
    arrays = heads.to_dict()
    assert arrays["offsets"].tolist() == [0, 7, 11] and arrays["position"].tolist() == [*range(7), *range(4)]
    own = model.layer[0]["attention"].own[1, 0, 3:, 3:].detach().numpy()
    np.testing.assert_allclose(heads.attention(0)[7:, :4], own, atol=1e-12)


def test_half_precision():
    """A bfloat16 model, and a float16 cache: PyTorch 1.13 cannot multiply float16 without a GPU."""
    torch.manual_seed(0)
    model = tiny.Stack(tiny.BertSelfAttention(WIDTH, HEADS)).eval().to(torch.bfloat16)
    heads = attsvm.torch.heads_from(model, torch.randn(2, LENGTH, WIDTH).to(torch.bfloat16))
    assert heads.to_dict()["keys"].dtype == np.float32 and 1e-5 < heads.difference.max() < 0.02
    cache = {f"blocks.0.attn.hook_{name}": torch.randn(2, LENGTH, HEADS, 4) for name in "qk"}
    exact = attsvm.torch.heads_from_cache(cache).to_dict()
    rounded = attsvm.torch.heads_from_cache({name: value.half() for name, value in cache.items()}).to_dict()
    assert rounded["keys"].dtype == np.float32
    for name in ("keys", "queries"):
        assert 0 < np.abs(rounded[name] - exact[name]).max() < 2**-10 * np.abs(exact[name]).max(), name


def test_several_batches_and_words():
    model, inputs, _ = model_of("bert")
    once = attsvm.torch.heads_from(model, inputs).to_dict()
    words = [["[CLS]", "a", "b", "a", "c", "d", "[SEP]"]] * SEQUENCES
    twice = attsvm.torch.heads_from(model, [inputs["x"][:2], inputs["x"][2:]], text=words, separators=["[SEP]"]).to_dict()
    np.testing.assert_allclose(once["keys"], twice["keys"], rtol=1e-12)
    assert twice["text"] == words[0] * SEQUENCES
    assert twice["sink"].reshape(SEQUENCES, LENGTH).tolist() == [[True] + [False] * 5 + [True]] * SEQUENCES
    short = attsvm.torch.heads_from(model, inputs["x"], text=[one[:4] for one in words]).to_dict()
    assert short["offsets"].tolist() == [0, 4, 8, 12]


def test_audit_of_a_model():
    """attsvm.audit reads a model's heads itself, and ends with what it says of those that heads_from reads."""
    model, inputs, _ = model_of("bert")
    words = [["[CLS]", "a", "b", "a", "c", "d", "[SEP]"]] * SEQUENCES
    heads = attsvm.torch.heads_from(model, inputs, text=words)
    expected, found = attsvm.audit(heads, nulls=1).to_dict(), attsvm.audit(model, inputs, text=words, nulls=1).to_dict()
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_bfloat16_through_every_shape():
    """Keys and queries are the rounded numbers that the model multiplied, as float32; the fused function rounds as well."""
    for shape in ("bert", "gpt2", "timm", "lens"):
        model, inputs, _ = model_of(shape, torch.bfloat16)
        heads = attsvm.torch.heads_from(model, inputs)
        keys = heads.to_dict()["keys"]
        assert keys.dtype == np.float32 and heads.difference.max() < 0.02, shape
        np.testing.assert_array_equal(torch.tensor(keys).to(torch.bfloat16).float().numpy(), keys)


def test_one_layer_at_a_time():
    """While a deep model runs, no more attention maps are alive at the last layer than at the second."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True)
    model, alive = torch.nn.TransformerEncoder(layer, 6).eval(), []

    def count(*_):
        gc.collect()
        maps = [one for one in gc.get_objects() if issubclass(type(one), torch.Tensor) and one.is_floating_point() and
                one.numel() >= SEQUENCES * HEADS * 40 * 40]
        alive.append(len(maps))

    for one in model.layers:
        one.register_forward_hook(count)
    heads = attsvm.torch.heads_from(model, torch.randn(SEQUENCES, 40, WIDTH))
    assert len(heads) == 6 * HEADS and len(alive) == 6 and max(alive[1:]) <= alive[1], alive


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_models_on_another_device():
    model, inputs, _ = model_of("llama", torch.float32)
    here = attsvm.torch.heads_from(model, inputs).to_dict()
    there = attsvm.torch.heads_from(model.cuda(), {name: one.cuda() for name, one in inputs.items()}).to_dict()
    for name in ("keys", "queries"):
        np.testing.assert_allclose(there[name], here[name], rtol=1e-4, atol=1e-5)


class Heedless(tiny.Stack):
    """Takes a mask and does not use it, as causal models may with padding on the right."""

    def forward(self, x, attention_mask):
        return super().forward(x)


def test_padding_that_the_model_does_not_mask():
    torch.manual_seed(0)
    model = Heedless(tiny.GPT2Attention(WIDTH, HEADS)).double().eval()
    mask = (torch.arange(LENGTH) < torch.tensor([7, 4])[:, None]).long()
    inputs = dict(x=torch.randn(2, LENGTH, WIDTH, dtype=torch.float64), attention_mask=mask)
    arrays = attsvm.torch.heads_from(model, inputs).to_dict()
    assert arrays["offsets"].tolist() == [0, 7, 11] and arrays["visible"].tolist() == [*range(1, 8), *range(1, 5)]


class Embedded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings, self.encoder = torch.nn.Embedding(50, WIDTH), tiny.Stack(tiny.BertSelfAttention(WIDTH, HEADS))

    def forward(self, input_ids, attention_mask=None):
        return self.encoder(self.embeddings(input_ids), attention_mask=attention_mask)


def test_ids_and_names():
    torch.manual_seed(0)
    model, ids = Embedded().eval(), torch.randint(50, (2, LENGTH))
    heads = attsvm.torch.heads_from(model, dict(input_ids=ids), layers="encoder.layer.0")
    assert heads.to_dict()["ids"].tolist() == ids.flatten().tolist()
    lens = tiny.Lens(tiny.HookedAttention(WIDTH, HEADS), tiny.HookedAttention(WIDTH, HEADS)).double().eval()
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)
    both = attsvm.torch.heads_from(lens, x)
    one = attsvm.torch.heads_from(lens, x, layers=["blocks.1.attn.hook_q"])
    assert len(both) == 2 * HEADS and len(one) == HEADS
    np.testing.assert_array_equal(one.to_dict()["keys"], both.to_dict()["keys"][HEADS:])
    with pytest.raises(ValueError, match="no attention was seen in blocks.7"):
        attsvm.torch.heads_from(lens, x, layers="blocks.7")


def test_a_cache_of_hooks():
    torch.manual_seed(0)
    lens = tiny.Lens(tiny.HookedAttention(WIDTH, HEADS), tiny.HookedAttention(WIDTH, HEADS)).double().eval()
    cache, x = {}, torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)
    for name, module in lens.named_modules():
        if isinstance(module, tiny.HookPoint):
            module.register_forward_hook(lambda *seen, name=name: cache.__setitem__(name, seen[2].detach()))
    direct = attsvm.torch.heads_from(lens, x)
    cached = attsvm.torch.heads_from_cache(cache)
    assert cached.difference.max() < 1e-12
    for name, array in direct.to_dict().items():
        if name != "difference":
            np.testing.assert_allclose(cached.to_dict()[name], array, rtol=1e-12, atol=1e-12)
    unrotated = {name: value for name, value in cache.items() if "rot" not in name}
    with pytest.raises(ValueError, match="blocks.0.attn: attention recomputed"):
        attsvm.torch.heads_from_cache(unrotated)
    del cache["blocks.0.attn.hook_pattern"], cache["blocks.0.attn.hook_attn_scores"]
    assert np.isnan(attsvm.torch.heads_from_cache(cache).difference[:HEADS]).all()
    np.testing.assert_array_equal(attsvm.torch.heads_from_cache(cache).to_dict()["visible"], direct.to_dict()["visible"])


def test_refusals():
    x = torch.randn(2, LENGTH, WIDTH)
    alibi = tiny.Stack(tiny.Alibi(WIDTH, HEADS)).eval()
    with pytest.raises(ValueError, match="layer.0.attention: attention recomputed .* differs"):
        attsvm.torch.heads_from(alibi, x)
    with pytest.raises(ValueError, match="no attention was seen"):
        attsvm.torch.heads_from(torch.nn.Linear(WIDTH, WIDTH).eval(), x)
    model = tiny.Stack(tiny.BertSelfAttention(WIDTH, HEADS))
    with pytest.raises(ValueError, match="training mode"):
        attsvm.torch.heads_from(model, x)
    model.eval()
    with pytest.raises(ValueError, match="text has 1 sequences"):
        attsvm.torch.heads_from(model, x, text=[["a"] * LENGTH])
    with pytest.raises(TypeError, match="text\\[0\\] is a str"):
        attsvm.torch.heads_from(model, x, text=["a" * LENGTH] * len(x))
    with pytest.raises(ValueError, match=f"text\\[0\\] has {LENGTH + 1} tokens; that sequence has {LENGTH}"):
        attsvm.torch.heads_from(model, x, text=[["a"] * (LENGTH + 1)] * len(x))
    with pytest.raises(ValueError, match="there is no text"):
        attsvm.torch.heads_from(model, x, separators=["."])
    mixed = tiny.Stack(tiny.BertSelfAttention(WIDTH, HEADS), tiny.BertSelfAttention(WIDTH, 2)).eval()
    with pytest.raises(ValueError, match="choose with layers="):
        attsvm.torch.heads_from(mixed, x)


def test_the_model_is_left_alone():
    model, inputs, _ = model_of("llama")
    before = model(**inputs)
    hooks = sum(len(one._forward_hooks) + len(one._forward_pre_hooks) for one in model.modules())
    attsvm.torch.heads_from(model, inputs)
    assert torch.equal(before, model(**inputs))
    assert hooks == sum(len(one._forward_hooks) + len(one._forward_pre_hooks) for one in model.modules())


def test_attsvm_does_not_need_torch():
    import subprocess
    code = ("import sys; sys.modules['torch'] = None; import attsvm; attsvm.Heads; attsvm.audit; "
            "assert 'attsvm.torch' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)
