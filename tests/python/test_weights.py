"""`attsvm heads`, which reads weights, gives what `attsvm.torch` sees while the model runs."""

import json
import struct

import attsvm
import attsvm.torch
import numpy as np
import pytest
import tiny_models as tiny
import torch

WIDTH, LENGTH, BATCH = 16, 7, 3

MODELS = {
    "bert": (lambda k: tiny.BertSelfAttention(WIDTH, 4), "encoder.layer.{}.attention.self.", dict(num_attention_heads=4)),
    "gpt2": (lambda k: tiny.GPT2Attention(WIDTH, 4, k), "h.{}.attn.", dict(n_head=4, scale_attn_by_inverse_layer_idx=True)),
    "llama": (lambda k: tiny.LlamaAttention(WIDTH, 4, 2), "model.layers.{}.self_attn.",
              dict(num_attention_heads=4, num_key_value_heads=2, rope_theta=100.0, model_type="llama")),
}


def save_tensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        numbers = tensor.detach().numpy().tobytes()
        header[name] = {"dtype": {torch.float64: "F64", torch.float32: "F32"}[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.mark.parametrize("dtype, most", [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("name", MODELS)
def test_the_same_heads(tmp_path, program, name, dtype, most):
    make, place, config = MODELS[name]
    torch.manual_seed(0)
    model = tiny.Stack(*(make(k) for k in range(2))).to(dtype).eval()
    read = []
    for one in model.layer:
        one["attention"].register_forward_pre_hook(lambda _, given: read.append(given[0].flatten(0, 1)))
    seen = attsvm.torch.heads_from(model, torch.randn(BATCH, LENGTH, WIDTH, dtype=dtype)).to_dict()
    save_tensors(tmp_path / "model.safetensors",
                 {place.format(key.split(".")[1]) + key.split(".attention.")[1]: value for key, value in model.state_dict().items()})
    (tmp_path / "config.json").write_text(json.dumps(config))
    np.savez(tmp_path / "inputs.npz", inputs=torch.stack(read).numpy(), offsets=np.arange(BATCH + 1) * LENGTH)
    done = program("heads", tmp_path / "model.safetensors", tmp_path / "inputs.npz", "-o", tmp_path / "heads.npz")
    assert done.returncode == 0, done.stderr
    heads = attsvm.load(tmp_path / "heads.npz").to_dict()
    for array in ("keys", "queries"):
        scale = np.abs(seen[array]).max()
        np.testing.assert_allclose(heads[array], seen[array], rtol=0, atol=most * scale, err_msg=array)
    for array in ("offsets", "sequence", "position", "layer", "head"):
        np.testing.assert_array_equal(heads[array], seen[array])
    np.testing.assert_array_equal(heads.get("key_head"), seen.get("key_head"))
    full = np.tile(np.full(LENGTH, LENGTH), BATCH)
    np.testing.assert_array_equal(heads.get("visible", full), seen.get("visible", full))
