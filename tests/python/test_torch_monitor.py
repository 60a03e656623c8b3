"""The monitor measures what it says, and leaves training alone."""

import pathlib
import sys

import attsvm
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (Debian: python3-torch)")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import attsvm.torch  # noqa: E402
import tiny_models as tiny  # noqa: E402

WIDTH, HEADS, LENGTH = 32, 4, 6


class Model(torch.nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.stack, self.drop, self.out = tiny.Stack(*layers), torch.nn.Dropout(0.2), torch.nn.Linear(WIDTH, 2)

    def forward(self, x):
        return self.out(self.drop(self.stack(x)))


def train(steps, watch=None, layers=None):
    torch.manual_seed(0)
    layers = layers or [tiny.BertSelfAttention(WIDTH, HEADS), tiny.GPT2Attention(WIDTH, HEADS)]
    model = Model(*layers).double()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)

    def loop():
        for _ in range(steps):
            optimizer.zero_grad()
            x = torch.randn(3, LENGTH, WIDTH, dtype=torch.float64)
            torch.nn.functional.mse_loss(model(x), x[..., :2]).backward()
            optimizer.step()

    if watch is None:
        loop()
        return model, None
    with attsvm.torch.monitor(model, **watch) as seen:
        loop()
    return model, seen


def test_training_is_not_changed():
    alone, _ = train(12)
    calls = []
    watched, seen = train(12, dict(every=5, callback=lambda step, record: calls.append((step, list(record)))))
    assert seen.steps == [0, 5, 10, 12] == [step for step, _ in calls]
    assert calls[0][1] == ["stack.layer.0.attention", "stack.layer.1.attention"] == seen.layers
    for one, other in zip(alone.parameters(), watched.parameters()):
        assert torch.equal(one, other)
    assert "forward" not in vars(watched) and watched.training and watched.drop.training


def test_numbers():
    """The last measurement, from the attention that the model itself kept on the probe."""
    torch.manual_seed(5)
    probe = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)
    model, seen = train(7, dict(every=3, probe=probe))
    arrays = seen.to_dict()
    assert arrays["step"].tolist() == [0, 3, 6, 7]
    model.eval()(probe)
    for k, layer in enumerate(model.stack.layer):
        own = layer["attention"].own.detach().numpy()
        rows = own[:, :, 1:] if k else own  # the first query of a causal layer sees one token
        with np.errstate(divide="ignore"):
            logs = np.sort(np.log(rows), -1)
        gaps = (logs[..., -1] - logs[..., -2]).transpose(1, 0, 2).reshape(HEADS, -1)
        np.testing.assert_allclose(arrays["gap"][-1, k], np.quantile(gaps, [0.1, 0.5, 0.9], axis=1).T, rtol=1e-6)
        np.testing.assert_allclose(arrays["weight"][-1, k], rows.max(-1).mean((0, 2)), rtol=1e-9)
        np.testing.assert_allclose(arrays["first_token"][-1, k], rows[..., 0].mean((0, 2)), rtol=1e-9)
        entropy = -np.where(rows > 0, rows * np.log(np.where(rows > 0, rows, 1)), 0).sum(-1)
        np.testing.assert_allclose(arrays["entropy"][-1, k], entropy.mean((0, 2)), rtol=1e-9)
    heads = attsvm.torch.heads_from(model, probe, layers="stack.layer.0").to_dict()
    logits = np.einsum("hsd,htd->hts", *(heads[name].reshape(HEADS, 2, LENGTH, -1)[:, 0] for name in ("keys", "queries")))
    other = np.einsum("hsd,htd->hts", *(heads[name].reshape(HEADS, 2, LENGTH, -1)[:, 1] for name in ("keys", "queries")))
    largest = np.maximum(np.abs(logits).max((1, 2)), np.abs(other).max((1, 2)))
    np.testing.assert_allclose(arrays["largest_logit"][-1, 0], largest, rtol=1e-9)


def test_drift_and_norms():
    torch.manual_seed(5)
    probe = torch.randn(4, LENGTH, WIDTH, dtype=torch.float64)
    torch.manual_seed(0)
    layer = tiny.BertSelfAttention(WIDTH, HEADS)
    model = Model(layer).double().train()
    seen = attsvm.torch.monitor(model, 1, probe=probe)
    with seen:
        model(probe)
        own = layer.own.argmax(-1)
        with torch.no_grad():
            layer.key.weight.normal_()
        model(probe)
        drift = (layer.own.argmax(-1) != own).double().mean((0, 2)).numpy()
    arrays = seen.to_dict()
    assert arrays["step"].tolist() == [0, 1, 2] and np.isnan(arrays["drift"][0]).all()
    np.testing.assert_allclose(arrays["drift"][1, 0], drift)
    assert drift.max() > 0.2 and not arrays["drift"][2].any()
    size = WIDTH // HEADS
    for h in range(HEADS):
        part = slice(h * size, (h + 1) * size)
        W = layer.key.weight[part].detach().numpy().T @ layer.query.weight[part].detach().numpy() / size**0.5
        expected = [np.linalg.norm(W), np.linalg.norm(W, 2), np.linalg.norm(W, "nuc")]
        np.testing.assert_allclose(arrays["norm"][-1, 0, h], expected, rtol=1e-9)


def packed(weight):
    return weight[:WIDTH], weight[WIDTH:2 * WIDTH]


def grouped(layer):
    key = layer.k_proj.weight.view(2, -1, WIDTH).repeat_interleave(2, 0).flatten(0, 1)
    return layer.q_proj.weight, key


@pytest.mark.parametrize("layer, parts", [
    (lambda: torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True), lambda m: packed(m.in_proj_weight)),
    (lambda: tiny.GPT2Attention(WIDTH, HEADS), lambda m: packed(m.c_attn.weight.T)),
    (lambda: tiny.TimmAttention(WIDTH, HEADS), lambda m: packed(m.qkv.weight)),
    (lambda: tiny.LlamaAttention(WIDTH, HEADS, 2), grouped),
], ids=["multihead", "gpt2", "timm", "llama"])
def test_norms_of_every_projection(layer, parts):
    torch.manual_seed(0)
    model = layer().double()
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)
    probe = (x, x, x) if isinstance(model, torch.nn.MultiheadAttention) else x
    with attsvm.torch.monitor(model, 1, probe=probe) as seen:
        pass
    query, key = (one.detach().numpy().reshape(HEADS, -1, WIDTH) for one in parts(model))
    expected = [np.linalg.norm(key[h].T @ query[h]) / (WIDTH // HEADS)**0.5 for h in range(HEADS)]
    np.testing.assert_allclose(seen.to_dict()["norm"][0, 0, :, 0], expected, rtol=1e-9)


def test_files_and_refusals(tmp_path):
    model, seen = train(3, dict(every=2))
    seen.save(tmp_path / "monitor.npz")
    with np.load(tmp_path / "monitor.npz") as file:
        assert file["layer_name"].tolist() == seen.layers and file["gap"].shape == (3, 2, HEADS, 3)
    with pytest.raises(ValueError, match="every = 0"):
        attsvm.torch.monitor(model, 0)
    with attsvm.torch.monitor(model):
        with pytest.raises(ValueError, match="replaced already"):
            attsvm.torch.monitor(model).__enter__()
    with pytest.raises(ValueError, match="nothing to measure on"):
        attsvm.torch.monitor(model).measure()
    with pytest.raises(ValueError, match="no attention"):
        with attsvm.torch.monitor(torch.nn.Linear(2, 2), probe=torch.ones(1, 2)):
            pass
