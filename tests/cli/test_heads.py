"""attsvm heads: keys and queries from weights under Hugging Face's names, against NumPy's arithmetic."""

import json
import struct

import numpy as np
import pytest

WIDTH, HEADS, TOKENS, OFFSETS = 24, 4, 11, [0, 6, 11]
SIZE = WIDTH // HEADS
POSITION = np.array([0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4])
TYPES = {np.dtype("f4"): "F32", np.dtype("f8"): "F64", np.dtype("f2"): "F16", np.dtype("i8"): "I64"}


def save_tensors(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        array = np.ascontiguousarray(array)
        header[name] = {"dtype": TYPES[array.dtype], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def drawn(rng, *shape):
    return rng.normal(size=shape).astype("f4")


def bert(rng, layers=2, place="bert.encoder.layer.{}.attention.self."):
    tensors = {"embeddings.word_embeddings.weight": drawn(rng, 5, WIDTH)}
    for k in range(layers):
        for one in ("query", "key", "value"):
            tensors[place.format(k) + one + ".weight"] = drawn(rng, WIDTH, WIDTH)
            tensors[place.format(k) + one + ".bias"] = drawn(rng, WIDTH)
    return tensors, dict(num_attention_heads=HEADS, position_embedding_type="absolute")


def gpt2(rng, layers=2):
    tensors = {}
    for k in range(layers):
        tensors[f"h.{k}.attn.c_attn.weight"] = drawn(rng, WIDTH, 3 * WIDTH)
        tensors[f"h.{k}.attn.c_attn.bias"] = drawn(rng, 3 * WIDTH)
    return tensors, dict(n_head=HEADS)


def llama(rng, layers=2, groups=2):
    tensors = {}
    for k in range(layers):
        tensors[f"model.layers.{k}.self_attn.q_proj.weight"] = drawn(rng, WIDTH, WIDTH)
        tensors[f"model.layers.{k}.self_attn.k_proj.weight"] = drawn(rng, groups * SIZE, WIDTH)
    return tensors, dict(num_attention_heads=HEADS, num_key_value_heads=groups, rope_theta=500.0, rope_scaling=None,
                         model_type="llama")


def split(x, count):
    """(N, count·d) as (count, N, d)."""
    return x.reshape(len(x), count, -1).transpose(1, 0, 2)


def rotate(x, base):
    half = x.shape[-1] // 2
    angle = POSITION[:, None] / base ** (np.arange(half) / half)
    left, right = x[..., :half], x[..., half:]
    return np.concatenate([left * np.cos(angle) - right * np.sin(angle), right * np.cos(angle) + left * np.sin(angle)], -1)


@pytest.fixture
def make(attsvm, tmp_path):
    """make(tensors, config, "--causal"): writes the files and runs the verb."""

    def run(tensors, config, *words, inputs=None, more=None):
        save_tensors(tmp_path / "model.safetensors", tensors)
        if config is not None:
            (tmp_path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
        x = np.random.default_rng(9).normal(size=(2, TOKENS, WIDTH)).astype("f4") if inputs is None else inputs
        np.savez(tmp_path / "inputs.npz", **{"inputs": x, "offsets": OFFSETS, **(more or {})})
        done = attsvm("heads", tmp_path / "model.safetensors", tmp_path / "inputs.npz", "-o", tmp_path / "heads.npz", *words)
        if done.code:
            assert done.code == 2 and len(done.lines()) == 1 and not done.out and not (tmp_path / "heads.npz").exists()
            return done.err
        with np.load(tmp_path / "heads.npz") as file:
            return x.astype(float), dict(file), done

    return run


def test_bert(make, attsvm, tmp_path):
    tensors, config = bert(np.random.default_rng(0))
    x, heads, done = make(tensors, config, more=dict(text=list("abcdefghijk"), x_mine=np.ones(2)))
    assert "heads.npz: 8 heads of size 6 on 11 tokens" in done.out
    for k in range(2):
        place = f"bert.encoder.layer.{k}.attention.self."
        q, key = (split(x[k] @ tensors[place + one + ".weight"].astype(float).T + tensors[place + one + ".bias"], HEADS)
                  for one in ("query", "key"))
        np.testing.assert_allclose(heads["keys"][4 * k:4 * k + 4], key, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(heads["queries"][4 * k:4 * k + 4], q / np.sqrt(SIZE), rtol=1e-12, atol=1e-12)
    assert heads["layer"].tolist() == [0] * 4 + [1] * 4 and heads["head"].tolist() == [0, 1, 2, 3] * 2
    assert "visible" not in heads and "key_head" not in heads and heads["text"].tolist() == list("abcdefghijk")
    assert heads["position"].tolist() == POSITION.tolist() and heads["sequence"].tolist() == [0] * 6 + [1] * 5
    assert attsvm("audit", tmp_path / "heads.npz", "--nulls", "0").code == 0


def test_gpt2(make):
    tensors, config = gpt2(np.random.default_rng(1))
    x, heads, _ = make(tensors, {**config, "scale_attn_by_inverse_layer_idx": True})
    for k in range(2):
        both = x[k] @ tensors[f"h.{k}.attn.c_attn.weight"].astype(float) + tensors[f"h.{k}.attn.c_attn.bias"]
        np.testing.assert_allclose(heads["keys"][4 * k:4 * k + 4], split(both[:, WIDTH:2 * WIDTH], HEADS), atol=1e-12)
        np.testing.assert_allclose(heads["queries"][4 * k:4 * k + 4], split(both[:, :WIDTH], HEADS) / np.sqrt(SIZE) / (k + 1),
                                   atol=1e-12)
    assert heads["visible"].tolist() == (POSITION + 1).tolist()
    plain = make(tensors, {**config, "scale_attn_weights": False}, "--no-causal", "--force")[1]
    np.testing.assert_allclose(plain["queries"][0], np.sqrt(SIZE) * heads["queries"][0], atol=1e-12)
    assert "visible" not in plain


def test_llama(make):
    tensors, config = llama(np.random.default_rng(2))
    x, heads, _ = make(tensors, config)
    for k in range(2):
        q, key = (rotate(split(x[k] @ tensors[f"model.layers.{k}.self_attn.{one}.weight"].astype(float).T, count), 500.0)
                  for one, count in (("q_proj", HEADS), ("k_proj", 2)))
        np.testing.assert_allclose(heads["keys"][2 * k:2 * k + 2], key, atol=1e-12)
        np.testing.assert_allclose(heads["queries"][4 * k:4 * k + 4], q / np.sqrt(SIZE), atol=1e-12)
    assert heads["key_head"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3] and heads["visible"].tolist() == (POSITION + 1).tolist()
    still = make(tensors, config, "--rotary", "0", "--causal", "--force")[1]
    assert not np.allclose(still["keys"], heads["keys"])
    np.testing.assert_allclose(still["keys"][:, [0, 6]], heads["keys"][:, [0, 6]], atol=1e-12)  # the first are not turned
    newer = make(tensors, {**config, "rope_theta": None, "rope_parameters": dict(rope_type="default", rope_theta=500.0)}, "--force")[1]
    np.testing.assert_array_equal(newer["keys"], heads["keys"])


def test_names_that_encoders_share(make):
    """Whisper, BART and CLIP name their projections as LLaMA does: without rotation the caller says who sees whom."""
    tensors, config = llama(np.random.default_rng(8))
    message = make(tensors, config, "--rotary", "0")
    assert "give --causal if queries see earlier tokens only, or --no-causal if they see all" in message
    encoder = make(tensors, config, "--rotary", "0", "--no-causal")[1]
    decoder = make(tensors, config, "--rotary", "0", "--causal", "--force")[1]
    assert "visible" not in encoder and decoder["visible"].tolist() == (POSITION + 1).tolist()


def test_sliding_windows(make):
    """A window is no limit where no sequence is longer, or where the configuration switches it off."""
    tensors, config = llama(np.random.default_rng(8))
    wide = make(tensors, {**config, "model_type": "mistral", "sliding_window": 6})[1]
    off = make(tensors, {**config, "model_type": "qwen2", "sliding_window": 2, "use_sliding_window": False}, "--force")[1]
    np.testing.assert_array_equal(wide["keys"], off["keys"])


def test_unknown_rotation(make):
    tensors, config = llama(np.random.default_rng(8))
    message = make(tensors, {**config, "model_type": "cohere"})
    assert 'model_type = "cohere"; how it rotates is not known here: give --rotary 500.0 if' in message
    told = make(tensors, {**config, "model_type": "cohere"}, "--rotary", "500.0")[1]
    np.testing.assert_array_equal(told["keys"], make(tensors, config, "--force")[1]["keys"])


def test_two_stacks(make):
    encoder, config = bert(np.random.default_rng(3), place="encoder.layer.{}.attention.self.")
    decoder, _ = bert(np.random.default_rng(4), place="decoder.layer.{}.attention.self.")
    message = make({**encoder, **decoder}, config)
    assert "several stacks of layers; choose with --prefix among decoder.layer. encoder.layer." in message
    assert "no layers under the prefix middle" in make({**encoder, **decoder}, config, "--prefix", "middle")
    one = make({**encoder, **decoder}, config, "--prefix", "decoder.layer")[1]
    other = make(decoder, config, "--force")[1]
    np.testing.assert_array_equal(one["keys"], other["keys"])


BERT, GPT2, LLAMA = bert(np.random.default_rng(5)), gpt2(np.random.default_rng(6)), llama(np.random.default_rng(7))
QUERY = "bert.encoder.layer.1.attention.self.query"
REFUSALS = [
    ({}, {}, {}, "has no attention of a known kind"),
    (BERT[0], None, {}, "config.json"),
    (BERT[0], "[1]", {}, "config.json: must be a JSON object"),
    (BERT[0], "{", {}, "config.json: not valid JSON"),
    (BERT[0], {}, {}, "num_attention_heads = 0; must be there"),
    (BERT[0], {"num_attention_heads": 2.5}, {}, "num_attention_heads = 2.5; must be an integer"),
    (BERT[0], {"num_attention_heads": 5}, {}, "layer 0 has 24 queries; not 5 heads of size 4"),
    (BERT[0], {**BERT[1], "position_embedding_type": "relative_key"}, {}, "more than products of keys and queries"),
    ({**BERT[0], QUERY + ".bias": np.zeros(3, "f4")}, BERT[1], {}, QUERY + ".bias has 3 numbers; its weight has 24 rows"),
    ({**BERT[0], QUERY + ".weight": np.full((WIDTH, WIDTH), np.nan, "f4")}, BERT[1], {}, QUERY + ".weight[0,0] = nan"),
    ({**BERT[0], QUERY + ".weight": np.ones((WIDTH, WIDTH), "i8")}, BERT[1], {}, "must be a matrix of floating numbers"),
    ({name: one for name, one in BERT[0].items() if name != QUERY.replace("query", "key") + ".weight"}, BERT[1], {},
     "has no tensor"),
    (BERT[0], BERT[1], {"inputs": np.zeros((3, TOKENS, WIDTH))}, "inputs has 3 layers"),
    (BERT[0], BERT[1], {"inputs": np.zeros((2, TOKENS, 7))}, "inputs has width 7; layer 0"),
    (BERT[0], BERT[1], {"inputs": np.zeros((TOKENS, WIDTH))}, "inputs has shape (11,24)"),
    (BERT[0], BERT[1], {"inputs": np.full((2, TOKENS, WIDTH), np.inf)}, "inputs[0][0,0] = inf"),
    (BERT[0], BERT[1], {"offsets": [0, 7]}, "offsets must rise from 0 to 11"),
    (BERT[0], BERT[1], {"text": ["a"]}, "text has shape"),
    (BERT[0], BERT[1], {"keys": np.ones(3)}, "unknown array 'keys'"),
    ({**GPT2[0], "h.0.attn.c_attn.weight": np.ones((WIDTH, WIDTH), "f4")}, GPT2[1], {}, "must be (w,3w)"),
    ({**GPT2[0], "h.1.attn.c_attn.bias": np.ones(WIDTH, "f4")}, GPT2[1], {}, "c_attn.bias has 24 numbers"),
    (LLAMA[0], {"num_attention_heads": HEADS, "num_key_value_heads": 2}, {}, "there is no rope_theta; give --rotary BASE"),
    (LLAMA[0], {**LLAMA[1], "num_key_value_heads": 3}, {}, "num_key_value_heads = 3; must divide the 4 heads"),
    (LLAMA[0], {**LLAMA[1], "rope_scaling": {"rope_type": "llama3"}}, {}, 'rope_scaling is of type "llama3"'),
    (LLAMA[0], {**LLAMA[1], "partial_rotary_factor": 0.5}, {}, "partial_rotary_factor = 0.5"),
    (LLAMA[0], {**LLAMA[1], "model_type": None}, {}, "model_type = null; how it rotates is not known"),
    (LLAMA[0], {**LLAMA[1], "sliding_window": 5}, {}, "inputs.npz: sequence 0 has 6 tokens; the model's sliding_window"),
    (LLAMA[0], {**LLAMA[1], "attn_logit_softcapping": 50.0}, {}, "attn_logit_softcapping = 50.0"),
    ({**LLAMA[0], "model.layers.0.self_attn.q_norm.weight": np.ones(SIZE, "f4")}, LLAMA[1], {}, "normalises queries and keys"),
]


@pytest.mark.parametrize("tensors, config, more, words", REFUSALS, ids=[one[-1][:40] for one in REFUSALS])
def test_refusals(make, tensors, config, more, words):
    message = make(tensors, config, more=more)
    assert isinstance(message, str) and words in message, message


def test_outputs(attsvm, make, tmp_path):
    make(*BERT)
    again = attsvm("heads", tmp_path / "model.safetensors", tmp_path / "inputs.npz", "-o", tmp_path / "heads.npz")
    assert again.code == 2 and "heads.npz" in again.err
    shown = attsvm("heads", tmp_path / "model.safetensors", tmp_path / "inputs.npz", "-o", tmp_path / "heads.npz", "--force", "--json")
    assert shown.json()["heads"] == 8 and shown.json()["layer"] == [0] * 4 + [1] * 4
    onto = attsvm("heads", tmp_path / "model.safetensors", tmp_path / "inputs.npz", "-o", tmp_path / "inputs.npz", "--force")
    assert onto.code == 2 and "inputs.npz" in onto.err
    moved = tmp_path / "other.json"
    (tmp_path / "config.json").rename(moved)
    assert attsvm("heads", tmp_path / "model.safetensors", tmp_path / "inputs.npz", "-o", tmp_path / "h.npz", "--config", moved).code == 0
