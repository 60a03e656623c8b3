"""What calling from Python costs over C++: bench/python_overhead.py BUILD_DIR (make bench-python).

Both sides do the same work on the same tasks, in turn; the figures are least times over all rounds.
"""

import json
import subprocess
import sys
import time

import attsvm

ROUNDS = 6


def least(rounds, work):
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best


def main(build):
    few, many = ([attsvm.generate("random", n=6, T=8, d=10, seed=1, instance=k) for k in range(count)]
                 for count in (200, 5000))
    ours, theirs = [], []
    for _ in range(ROUNDS):
        lines = subprocess.run([f"{build}/attsvm_bench", "calls"], capture_output=True, check=True).stdout.splitlines()
        theirs.append({line["name"]: min(line["seconds"]) for line in map(json.loads, lines)})
        ours.append({
            "solve": least(20, lambda: [attsvm.solve(task) for task in few]) / len(few),
            "W": least(20, lambda: [attsvm.solve(task).W for task in few]) / len(few),
            "solve_many": least(5, lambda: attsvm.solve_many(many)),
            "train_many": least(5, lambda: attsvm.train_many(few, steps=500)),
        })
    python = {name: min(one[name] for one in ours) for name in ours[0]}
    cpp = {name: min(one[name] for one in theirs) for name in theirs[0]}
    print(f"solve, (6,8,10):        C++ {1e6 * cpp['solve']:6.1f} us, Python {1e6 * python['solve']:6.1f} us: "
          f"{1e6 * (python['solve'] - cpp['solve']):.1f} us over it; {1e6 * (python['W'] - cpp['solve']):.1f} us "
          "when W is read")
    for name, count in (("solve_many", len(many)), ("train_many", len(few))):
        print(f"{name}, {count} tasks:  C++ {1e3 * cpp[name]:6.1f} ms, Python {1e3 * python[name]:6.1f} ms: "
              f"{100 * (python[name] / cpp[name] - 1):+.1f} %")


if __name__ == "__main__":
    main(sys.argv[1])
