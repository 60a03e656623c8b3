#!/usr/bin/env python3
"""How long passes take on many ranks, by the model of docs/howto/cluster.md: prints its table."""

import math

QUERIES, TOKENS, D, DZ = 10_000_000, 128, 512, 512
CORES = 24  # per rank
# CPU seconds of one core of a busy AMD EPYC: per number of the tokens in a gradient, per multiplication of a Newton
# product in single precision, and per byte that a rank merges.
PER_NUMBER, PER_PRODUCT, PER_MERGED_BYTE = 2.3e-9, 1.7e-11, 0.95e-9
HOP = 0.2e-3  # assumed: seconds from rank to rank besides the bytes, with the sleep between looks at the wire
WORKING = 4  # rows per query in the working set of a solve


def together(ranks, size, bandwidth):
    """Seconds until ranks have `size` bytes together: up the tree and down."""
    levels = math.ceil(math.log2(ranks))
    return levels * (2 * (HOP + size / bandwidth) + size * PER_MERGED_BYTE)


def passes(ranks, bandwidth):
    """Seconds of a gradient, and of a product in Newton's equations: work, messages."""
    cores = ranks * CORES
    gradient = QUERIES * TOKENS * D * PER_NUMBER / cores, together(ranks, 8 * D * DZ, bandwidth)
    product = (QUERIES * (2 * D * DZ + 2 * WORKING * D) * PER_PRODUCT / cores,
               together(ranks, 4 * D * DZ, bandwidth) + 2 * together(ranks, 64, bandwidth))
    return gradient, product


def seconds(time):
    return f"{time:.2g} s" if time >= 1 else f"{1000 * time:.0f} ms"


def table():
    rows = ["| ranks | network | gradient: work + messages | efficiency | Newton product: work + messages | efficiency |",
            "|---|---|---|---|---|---|"]
    for gigabits in (10, 100):
        for ranks in (16, 64, 512):
            row = [str(ranks), f"{gigabits} Gbit/s"]
            for work, messages in passes(ranks, gigabits * 1e9 / 8):
                row += [f"{seconds(work)} + {seconds(messages)}", f"{100 * work / (work + messages):.0f} %"]
            rows.append("| " + " | ".join(row) + " |")
    return rows


if __name__ == "__main__":
    print("\n".join(table()))
