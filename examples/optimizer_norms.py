#!/usr/bin/env python3
"""Does the norm of an optimizer show in the heads that it trains? Small models, five seeds, random heads beside.

    examples/optimizer_norms.py -o norms.json          # about seven minutes of one processor

A vision transformer learns scikit-learn's digits, and a character model a licence, with SGD, Adam and Muon, under
attsvm.torch.monitor. Then rho of every head is taken in four norms, beside random heads with the same activations. The
control trains one W on fixed tokens, as the theory has it.
"""

import argparse
import json
import pathlib
import time

import attsvm
import attsvm.torch
import numpy as np
import torch
from torch import nn

NORMS = ("fro", "nuc", "spec", "max")
# By theory, for keys and queries trained apart; that of Adam is for W itself.
NAMED = {"sgd": "nuc", "adam": "max", "muon": "spec"}
CONTROLS = {"sgd": "fro", "sign": "max", "adam": "max", "muon": "spec", "sgd on K and Q": "nuc"}
TEXT = pathlib.Path("/usr/share/common-licenses/GPL-3")
WIDTH, HEADS, LAYERS = 32, 4, 2


class Attention(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.num_heads, self.causal = HEADS, causal
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (one(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in (self.query, self.key, self.value))
        logits = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if self.causal:
            logits = logits.masked_fill(torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
        return self.out((logits.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.attention, self.norms = Attention(causal), nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class Digits(nn.Module):
    """A vision transformer: 16 patches of 2 x 2 pixels, and a token that is asked for the class."""

    def __init__(self):
        super().__init__()
        self.patch, self.places = nn.Linear(4, WIDTH), nn.Parameter(torch.randn(17, WIDTH) / 4)
        self.blocks = nn.Sequential(*(Block(False) for _ in range(LAYERS)))
        self.norm, self.classes = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, images):
        patches = images.view(-1, 4, 2, 4, 2).transpose(2, 3).flatten(3).flatten(1, 2)
        x = nn.functional.pad(self.patch(patches), (0, 0, 1, 0)) + self.places
        return self.classes(self.norm(self.blocks(x)[:, 0]))


class Characters(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.letters, self.places = nn.Embedding(count, WIDTH), nn.Parameter(torch.randn(32, WIDTH) / 4)
        self.blocks = nn.Sequential(*(Block(True) for _ in range(LAYERS)))
        self.norm, self.following = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, count)

    def forward(self, input_ids):
        return self.following(self.norm(self.blocks(self.letters(input_ids) + self.places[:input_ids.shape[1]])))


class Muon(torch.optim.Optimizer):
    """Momentum, whose matrices U S Vᵀ become U Vᵀ; what is no matrix takes steps of the momentum's signs."""

    def __init__(self, parameters, lr, beta=0.9):
        super().__init__(parameters, dict(lr=lr, beta=beta))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for one in group["params"]:
                past = self.state[one].setdefault("momentum", torch.zeros_like(one))
                past.mul_(group["beta"]).add_(one.grad, alpha=1 - group["beta"])
                if one.dim() == 2:
                    U, _, Vh = torch.linalg.svd(past, full_matrices=False)
                    one.sub_(U @ Vh, alpha=group["lr"])
                else:
                    one.sub_(past.sign(), alpha=0.1 * group["lr"])


def digits(rng):
    from sklearn.datasets import load_digits
    images, labels = (torch.tensor(one) for one in load_digits(return_X_y=True))
    images = images.float() / 16

    def batch(size=64):
        rows = rng.integers(len(images), size=size)
        return images[rows], labels[rows]

    return Digits(), batch, 400


def characters(rng):
    text = TEXT.read_text(encoding="utf-8")
    letters = sorted(set(text))
    ids = torch.tensor([letters.index(one) for one in text])

    def batch(size=16):
        rows = torch.tensor(rng.integers(len(ids) - 33, size=size))[:, None] + torch.arange(33)
        return ids[rows[:, :-1]], ids[rows[:, 1:]]

    return Characters(len(letters)), batch, 600


def optimizer_for(name, model):
    if name == "sgd":
        return torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    if name == "adam":
        return torch.optim.Adam(model.parameters(), 3e-3, betas=(0.9, 0.95))
    return Muon(model.parameters(), 0.02)


def shorten(optimizer, step, steps):
    """Steps shrink to zero along a straight line."""
    for group in optimizer.param_groups:
        group["lr"] *= 1 - 1 / (steps - step + 1)


def trained(kind, name, seed, queries, nulls):
    """One training under the monitor; the heads of its end, each with rho and its null in every norm."""
    torch.manual_seed(seed)
    model, batch, steps = kind(np.random.default_rng(seed))
    probe, _ = batch(64)
    optimizer = optimizer_for(name, model)
    with attsvm.torch.monitor(model, every=100, probe=probe, norm=None) as seen:
        for step in range(steps):
            shorten(optimizer, step, steps)
            inputs, targets = batch()
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())
            loss.backward()
            optimizer.step()
    heads = attsvm.torch.heads_from(model.eval(), probe)
    rho = {norm: [heads.rho(h, norm, queries=queries, nulls=nulls, threads=1) for h in range(len(heads))]
           for norm in NORMS}
    last = {name: float(np.nanmean(seen.to_dict()[name][-1])) for name in ("weight", "entropy", "drift")}
    return {"model": kind.__name__, "optimizer": name, "seed": seed, "loss": float(loss), "end": last,
            "rho": rho}


def control(name, seed, steps=6000):
    """W on fixed tokens with fixed targets, and a loss whose gradient does not vanish: log of the cross-entropy."""
    torch.manual_seed(seed)
    n, T, d = 12, 8, 10
    tokens, queries = torch.randn(n, T, d, dtype=torch.float64), torch.randn(n, d, dtype=torch.float64)
    W = nn.Parameter(torch.zeros(d, d, dtype=torch.float64))
    factors = [nn.Parameter(0.1 * torch.randn(d, d, dtype=torch.float64)) for _ in range(2)]
    optimizer = {"sgd": lambda: torch.optim.SGD([W], 0.05), "sign": lambda: torch.optim.SGD([W], 0.002),
                 "adam": lambda: torch.optim.Adam([W], 0.002, betas=(0.9, 0.95)), "muon": lambda: Muon([W], 0.005),
                 "sgd on K and Q": lambda: torch.optim.SGD(factors, 0.004)}[name]()
    for step in range(steps):
        shorten(optimizer, step, steps)
        optimizer.zero_grad()
        now = W if name != "sgd on K and Q" else factors[0] @ factors[1].T
        logits = torch.einsum("ntd,de,ne->nt", tokens, now, queries)
        odds = torch.logsumexp(logits[:, 1:], 1) - logits[:, 0]  # log of the odds against token 0
        loss = nn.functional.softplus(odds.clamp(min=-30))  # cross-entropy
        torch.logsumexp(torch.where(odds > -30, loss.log(), odds), 0).backward()
        if name == "sign":
            W.grad.sign_()
        optimizer.step()
    W = now.detach().numpy()
    task = attsvm.Task(tokens.numpy(), queries=queries.numpy(), select=np.zeros(n, int))
    return {"optimizer": name, "seed": seed, "rho": attsvm.margin(task, W, select="file", norms=NORMS, threads=1).rho}


def ratio_table(runs):
    """Mean over seeds, and its standard error, of each run's median over heads of rho over the null's mean."""
    rows = {}
    for model in dict.fromkeys(run["model"] for run in runs):
        for name in NAMED:
            mine = [run for run in runs if run["model"] == model and run["optimizer"] == name]
            ratios = np.array([[np.nanmedian([one["value"] / one["null_mean"] for one in run["rho"][norm]])
                                for norm in NORMS] for run in mine])
            rows[f"{model}, {name}"] = ratios.mean(0), ratios.std(0, ddof=1) / len(mine) ** 0.5
    return rows


def show(title, rows, named):
    print(f"\n{title:<24}" + "".join(f"{norm:>14}" for norm in NORMS))
    for name, (mean, error) in rows.items():
        marks = ["*" if norm == named(name) else " " for norm in NORMS]
        print(f"{name:<24}" + "".join(f"{m:>8.3f}{mark}±{e:.3f}" for m, e, mark in zip(mean, error, marks)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", help="a JSON file with every number")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=64)
    parser.add_argument("--nulls", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    begin, runs, controls = time.process_time(), [], []
    for seed in range(options.seeds):
        controls += [control(name, seed) for name in CONTROLS]
        for kind in (digits, characters):
            for name in NAMED:
                run = trained(kind, name, seed, options.queries, options.nulls)
                runs.append(run)
                print(f"seed {seed}, {kind.__name__}, {name}: loss {run['loss']:.3f}, attention of the choice "
                      f"{run['end']['weight']:.2f}, {time.process_time() - begin:.0f} s of processor time", flush=True)
    by_control = {}
    for name in CONTROLS:
        values = np.array([[one["rho"][norm] for norm in NORMS] for one in controls if one["optimizer"] == name])
        by_control[name] = values.mean(0), values.std(0, ddof=1) / len(values) ** 0.5
    show("control: rho", by_control, CONTROLS.get)
    show("models: rho over null", ratio_table(runs), lambda name: NAMED[name.rpartition(", ")[2]])
    unknown = sum(np.isnan(one["value"] / one["null_mean"]) for run in runs for norm in NORMS for one in run["rho"][norm])
    print(f"\n{unknown} of {len(runs) * LAYERS * HEADS * len(NORMS)} numbers are not known: an SVM stalled")
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps({"control": controls, "models": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
