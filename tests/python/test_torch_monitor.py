"""The monitor measures what it says, and leaves training alone."""

import json
import pathlib
import re
import sys
import warnings

import attsvm
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (Debian: python3-torch)")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import attsvm.torch  # noqa: E402
import tiny_models as tiny  # noqa: E402

WIDTH, HEADS, LENGTH = 32, 4, 6
LOG_99 = np.log(99)


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
        np.testing.assert_allclose(arrays["sink_weight"][-1, k], rows[..., 0].mean((0, 2)), rtol=1e-9)
        np.testing.assert_allclose(arrays["sink_share"][-1, k], (rows.argmax(-1) == 0).mean((0, 2)), rtol=1e-9)
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
    with pytest.raises(ValueError, match="nothing was measured"):
        attsvm.torch.monitor(model).to_dict()
    with pytest.raises(ValueError, match="nothing was measured"):
        attsvm.torch.monitor(model).save(tmp_path / "empty.npz")
    assert not (tmp_path / "empty.npz").exists()
    with pytest.raises(ValueError, match="no attention"):
        with attsvm.torch.monitor(torch.nn.Linear(2, 2), probe=torch.ones(1, 2)):
            pass


class Growing(torch.nn.Module):
    """Two tokens whose logits differ by `gap`, for every query alike."""

    def __init__(self, gap):
        super().__init__()
        self.num_heads, self.gap = 1, torch.nn.Parameter(torch.tensor(float(gap), dtype=torch.float64))

    def forward(self, x):
        ones = torch.ones(x.shape[0], 1, 2, 1, dtype=torch.float64)
        keys = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(x.shape[0], 1, 2, 1)
        return torch.softmax((self.gap * ones) @ keys.transpose(-1, -2), -1)


def forecasts(gaps, every=10):
    model = Growing(gaps[0]).train()
    with attsvm.torch.monitor(model, every, norm=None) as seen:
        for gap in gaps:
            with torch.no_grad():
                model.gap.fill_(gap)
            for _ in range(every):
                model(torch.zeros(3, 2))
    return seen.to_dict()["forecast"][:, 0, 0]


def test_forecast_of_a_steady_growth():
    """Gaps that grow by 0.02 per step reach 99 % at log 99/0.02, whenever one asks; the first measurement knows no rate."""
    found = forecasts([0.2 * k for k in range(20)])
    assert np.isnan(found[0])
    np.testing.assert_allclose(found[1:-1], LOG_99 / 0.02, rtol=1e-9)
    assert np.isnan(forecasts([1.0, 0.9, 0.8])[:3]).all(), "gaps that shrink"
    assert forecasts([6.0, 6.0, 6.0]).tolist() == [0, 10, 20, 30], "there already"
    # The rate is that of the last five measurements: a jump long ago does not count.
    found = forecasts([0.0, 2.0, *(2.0 + 0.1 * k for k in range(1, 9))])
    np.testing.assert_allclose(found[9], 90 + (LOG_99 - 2.8) / 0.01, rtol=1e-9)


class Shifted(torch.nn.Module):
    """Every token asks for the one before it; the second head for the first token."""

    def __init__(self):
        super().__init__()
        self.num_heads, self.scale = 2, torch.nn.Parameter(torch.tensor(5.0))

    def forward(self, input_ids):
        places = torch.eye(input_ids.shape[1]).expand(len(input_ids), 2, -1, -1)
        asked = torch.stack([places[:, 0].roll(1, 1), places[:, 1, :1].expand_as(places[:, 1])], 1)
        return torch.softmax(self.scale * asked @ places.transpose(-1, -2), -1)


def test_kinds():
    model = Shifted().train()
    with attsvm.torch.monitor(model, 1, norm=None) as seen:
        model(torch.arange(12).view(2, 6))
    arrays = seen.to_dict()
    assert arrays["kind_words"] == ["offset -1", "position 0"] * 2
    np.testing.assert_allclose(arrays["kind"][0, 0], [[5 / 6, 1 / 6, 0, 0], [1 / 6, 1, 0, 0]], atol=1e-12)
    np.testing.assert_allclose(arrays["sink_share"][0, 0], [1 / 6, 1])


class Muon(torch.optim.SGD):
    """A name is all that the monitor has to go by."""


@pytest.mark.parametrize("make, norm", [(torch.optim.SGD, "nuc"), (torch.optim.AdamW, "max"), (Muon, "spec"),
                                        (torch.optim.Rprop, None)])
def test_rho_in_the_norm_of_the_optimizer(make, norm):
    torch.manual_seed(0)
    probe = torch.randn(6, LENGTH, WIDTH, dtype=torch.float64)
    model = Model(tiny.BertSelfAttention(WIDTH, HEADS)).double()
    optimizer = make(model.parameters(), 1e-3)
    with attsvm.torch.monitor(model, 1, probe=probe) as seen:  # finds the optimizer
        for _ in range(18):
            optimizer.zero_grad()
            model(probe).square().mean().backward()
            optimizer.step()
    rho = seen.to_dict()["rho"]
    assert seen.rho_norm == norm and rho.shape == (19, 1, HEADS, 3)
    if norm is None:
        assert np.isnan(rho).all()
        return
    assert np.flatnonzero(~np.isnan(rho[:, 0, 0, 0])).tolist() == [16, 18], "the last counts too"
    heads = attsvm.torch.heads_from(model.eval(), probe)
    for h in range(HEADS):
        expected = heads.rho(h, norm, queries=64, nulls=4)
        np.testing.assert_allclose(rho[-1, 0, h], [expected[name] for name in ("value", "null_mean", "null_deviation")],
                                   rtol=1e-9)
        assert 0 < rho[-1, 0, h, 0] <= 1 + 1e-3


def test_norm_that_theory_names():
    """Where keys are not trained, gradient descent trains W; two optimizers, or none, leave it open; a norm can be given."""
    model = tiny.BertSelfAttention(WIDTH, HEADS).double()
    probe = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)

    def norm(**options):
        with attsvm.torch.monitor(model, probe=probe, **options) as seen:
            pass
        return seen.rho_norm

    assert norm() is None and norm(norm="l1") == "l1" and norm(norm=None) is None
    first = torch.optim.SGD(model.parameters(), 0.1)
    assert norm() == "nuc"
    second = torch.optim.Adam(model.parameters(), 0.1)
    assert norm() is None and norm(optimizer=second) == "max" and norm(optimizer=first) == "nuc"
    model.key.weight.requires_grad_(False)
    assert norm(optimizer=first) == "fro"


def test_explosions():
    torch.manual_seed(0)
    layer = tiny.BertSelfAttention(WIDTH, HEADS)
    model, probe = Model(layer).double().train(), torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)
    with attsvm.torch.monitor(model, 1, probe=probe, norm=None) as seen, warnings.catch_warnings():
        warnings.simplefilter("error")
        model(probe)
        with torch.no_grad():
            layer.query.weight[:WIDTH // HEADS] *= 1e4  # the first head's
        with pytest.warns(RuntimeWarning, match=r"step 1: stack.layer.0.attention, head 0: its largest logit is .* above 100"):
            model(probe)
        model(probe)  # once is enough
    assert len(seen.warnings) == 1
    with torch.no_grad():
        layer.query.weight.fill_(torch.nan)
    with pytest.warns(RuntimeWarning, match="largest logit is nan"):
        with attsvm.torch.monitor(model, 1, probe=probe) as seen:
            model(probe)
    assert len(seen.warnings) == HEADS and np.isnan(seen.to_dict()["gap"]).all()


def test_cost_in_forward_passes():
    """One more pass per measurement, and nothing else runs the model."""
    model = Model(tiny.BertSelfAttention(WIDTH, HEADS)).double()
    passes = {True: 0, False: 0}
    model.stack.register_forward_hook(lambda *_: passes.__setitem__(model.training, passes[model.training] + 1))
    with attsvm.torch.monitor(model, 20) as seen:
        for _ in range(100):
            model(torch.randn(2, LENGTH, WIDTH, dtype=torch.float64))
    assert passes == {True: 100, False: 6} and len(seen.steps) == 6


def test_padding_does_not_ask():
    torch.manual_seed(0)
    model = tiny.Stack(tiny.BertSelfAttention(WIDTH, HEADS)).double().train()
    mask = (torch.arange(LENGTH) < torch.tensor([6, 3])[:, None]).long()
    probe = dict(x=torch.randn(2, LENGTH, WIDTH, dtype=torch.float64), attention_mask=mask)
    with attsvm.torch.monitor(model, probe=probe, norm=None) as seen:
        pass
    own = model.layer[0]["attention"].own.detach().numpy()
    rows = np.concatenate([own[0], own[1, :, :3]], 1)
    np.testing.assert_allclose(seen.to_dict()["weight"][0, 0], rows.max(-1).mean(1), rtol=1e-9)
    np.testing.assert_allclose(seen.to_dict()["entropy"][0, 0],
                               -(np.where(rows > 0, rows, 1) * np.log(np.where(rows > 0, rows, 1))).sum(-1).mean(1))


def test_scalars():
    written = []
    writer = type("Writer", (), {"add_scalar": lambda self, *given: written.append(given)})()
    _, seen = train(2, dict(every=1, callback=attsvm.torch.scalars_to(writer, "heads")))
    arrays = seen.to_dict()
    found = {(tag, step): value for tag, value, step in written}
    assert len(found) == len(written), "every tag once per step"
    for step in range(3):
        place = "heads/stack.layer.1.attention/head 2"
        assert found[f"{place}/gap_50", step] == arrays["gap"][step, 1, 2, 1]
        assert found[f"{place}/norm_nuc", step] == arrays["norm"][step, 1, 2, 2]
        assert found[f"{place}/kind_offset", step] == arrays["kind"][step, 1, 2, 0]
    assert ("heads/stack.layer.0.attention/head 0/drift", 0) not in found, "nothing to compare with yet"
    assert all(np.isfinite(value) for value in found.values())


def test_page(program, tmp_path):
    _, seen = train(5, dict(every=2))
    seen.save(tmp_path / "monitor.npz")
    done = program("report", "monitor.npz", "-o", "page.html", cwd=tmp_path, codes=(0, 2))
    if "npm" in done.stderr:
        pytest.skip("this build has no pages")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    data, arrays = json.loads(re.search(r'id="data">(.*?)</script>', html, re.S)[1]), seen.to_dict()
    assert data["kind"] == "monitor" and data["step"] == seen.steps and data["layers"] == seen.layers
    np.testing.assert_array_equal(np.array(data["measures"]["gap_90"]), arrays["gap"][..., 2].transpose(1, 2, 0))
    np.testing.assert_array_equal(np.array(data["measures"]["induction"]), arrays["kind"][..., 3].transpose(1, 2, 0))
    assert data["rho"]["norm"] == "max" and data["rho"]["step"] == seen.steps[-1:]
    np.testing.assert_array_equal(np.array(data["rho"]["rho"])[..., -1], arrays["rho"][-1, ..., 0])
    assert np.ravel(data["kinds"]).tolist() == arrays["kind_words"][-2 * HEADS:]
    wrong = program("report", "monitor.npz", "--run", "monitor.npz", "-o", "other.html", cwd=tmp_path, codes=(2,))
    assert "go with a task" in wrong.stderr and not (tmp_path / "other.html").exists()
    cut = {**np.load(tmp_path / "monitor.npz"), "gap": np.zeros((4, 2, 4, 2))}
    np.savez(tmp_path / "cut.npz", **cut)
    wrong = program("report", "cut.npz", "-o", "other.html", cwd=tmp_path, codes=(2,))
    assert "cut.npz: gap has shape (4,2,4,2); must be (4,2,4,3)" in wrong.stderr
