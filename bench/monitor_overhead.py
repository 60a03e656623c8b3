"""What attsvm.torch.monitor costs, in processor time: the parts of a training under it, and their sum at the defaults.

    PYTHONPATH=build/dev/python build/python/bin/python bench/monitor_overhead.py

A GPT of four layers with four heads of size 32, on 16 sequences of 64 tokens.
"""

import argparse
import sys
import time

import attsvm.torch
import torch
from torch import nn

WIDTH, HEADS, LAYERS, TOKENS, SEQUENCES, WORDS = 128, 4, 4, 64, 16, 2000


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(TOKENS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.1, "gelu", batch_first=True, norm_first=True)
        self.layers, self.following = nn.TransformerEncoder(layer, LAYERS), nn.Linear(WIDTH, WORDS)

    def forward(self, input_ids):
        ahead = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
        return self.following(self.layers(self.words(input_ids) + self.places(torch.arange(TOKENS)), mask=ahead))


def processor_time(call, times):
    """Median seconds of a call."""
    seconds = []
    for _ in range(times):
        begin = time.process_time()
        call()
        seconds.append(time.process_time() - begin)
    return sorted(seconds)[times // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, nargs="*", default=[1_000, 10_000], help="of trainings that sums are for")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Gpt()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    ids = torch.randint(WORDS, (SEQUENCES, TOKENS))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
        optimizer.step()

    training = processor_time(step, 21)
    plain = attsvm.torch.monitor(model, probe=ids, norm=None)

    def measure(monitor):
        monitor._count += 1  # as if a step were taken: the same step is not measured twice
        monitor.measure(rho=True)

    each = processor_time(lambda: measure(plain), 5)
    print(f"a step of training {1e3 * training:.0f} ms, a measurement {1e3 * each:.0f} ms: "
          f"{each / (100 * training):.2%} of a training that is measured every 100 steps")
    for norm in ("fro", "nuc", "max", "spec"):
        monitor = attsvm.torch.monitor(model, probe=ids, norm=norm)
        more = processor_time(lambda: measure(monitor), 1) - each
        sums = []
        for steps in options.steps:
            measurements = steps // 100 + 1
            times = sum(4**k < measurements - 1 for k in range(2, 32)) + 1
            share = (measurements * each + times * more) / (steps * training)
            sums.append(f"{share:.1%} of {steps} steps with {times}")
        print(f"rho in {norm:<5}{1e3 * more:6.0f} ms; in all {', '.join(sums)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
