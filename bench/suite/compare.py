"""bench/compare A.json B.json: what got slower from A to B, or faster, by more than the noise.

The noise of a row is its spread, half the distance of its quartiles; that of a difference is the root of both squared. A change counts when
the medians differ by more than three times that and by more than 3 %. Rows that were timed once have no spread: there 30 % counts."""

import argparse
import math
import sys

from suite.results import key_of, load
from suite.table import duration

TIMES_NOISE, LEAST, SINGLE = 3, 0.03, 0.30
RULE = ("A change counts when the medians differ by more than three times the noise of both (half the distance of their quartiles) and by more than 3 %; rows that were timed "
        "once by more than 30 %. Exit code 1 if something got slower or worse, 2 if there is nothing to compare.")
# What must not grow: what, from where on it matters, by which factor
GROWTH = [("gap", 1e-12, 10), ("violation", 1e-10, 10), ("memory", 0, 1.1), ("error_direction", 1e-12, 10)]


def noise(row):
    """Relative to the median."""
    return None if row.get("low") is None else (row["high"] - row["low"]) / 2 / row["median"]


def judge(before, after):
    """"slower", "faster", "same", or None where there is nothing to compare."""
    if not before.get("median") or not after.get("median"):
        return None
    noises = noise(before), noise(after)
    bound = SINGLE if None in noises else max(LEAST, TIMES_NOISE * math.hypot(*noises))
    change = math.log(after["median"] / before["median"])
    return "same" if abs(change) <= math.log1p(bound) else "slower" if change > 0 else "faster"


def lost_answers(before, after):
    """What was worth something and is not any more: words for it, or None."""
    if before["status"] == "ok" != after["status"]:
        return after["status"]
    if before.get("verified") and not after.get("verified"):
        return "no longer verified"
    if not before.get("wrong") and after.get("wrong"):
        return f"{after['wrong']} wrong answers"
    for key, least, factor in GROWTH:
        if before.get(key) is not None and after.get(key) is not None and after[key] > max(least, factor * before[key]):
            return f"{key} {before[key]:.2g} -> {after[key]:.2g}"
    return None


def compare(a, b):
    """Lists by verdict: (key, row of a, row of b)."""
    earlier = {key_of(row): row for row in a.rows}
    found = {"slower": [], "faster": [], "same": [], "worse": [], "missing": []}
    for row in b.rows:
        before = earlier.pop(key_of(row), None)
        if before is None:
            continue
        if lost_answers(before, row):
            found["worse"].append((key_of(row), before, row))
        elif verdict := judge(before, row):
            found[verdict].append((key_of(row), before, row))
    found["missing"] = [(key, row, None) for key, row in earlier.items()]
    return found


def speeds(results):
    return {(row["case"], row["who"]): row["speed"] for row in results.rows if row["section"] == "limits"}


def main():
    words = argparse.ArgumentParser(prog="bench/compare", description="What got slower, by more than the noise.", epilog=RULE)
    words.add_argument("a", metavar="BEFORE.json", help="results of bench/run")
    words.add_argument("b", metavar="AFTER.json", help="later results, on the same machine")
    words.add_argument("--ours", action="store_true", help="leave the peers' rows out")
    chosen = words.parse_args()
    a, b = load(chosen.a), load(chosen.b)
    for key, speed in speeds(a).items():
        other = speeds(b).get(key)
        if other and abs(math.log(other / speed)) > math.log(1.1):
            print(f"the machine: {key[0]}, {key[1]}: {speed / 1e9:.1f} became {other / 1e9:.1f} G{'B/s' if 'read' in key[0] else 'flop/s'}; times differ for that alone")
    for what, one, other in (("quick", a.settings.get("quick"), b.settings.get("quick")), ("cores", a.machine.get("cores"), b.machine.get("cores"))):
        if one != other:
            print(f"not alike: {what} is {one} in one file and {other} in the other; ratios mean little")
    found = compare(a, b)
    if chosen.ours:
        peers = ("solvers", "infeasible", "training", "jobs")
        found = {verdict: [one for one in rows if one[0][0] not in peers or one[0][2].startswith("attsvm")] for verdict, rows in found.items()}
    for verdict in ("worse", "slower", "faster"):
        for key, before, after in sorted(found[verdict], key=lambda one: -abs(math.log(one[2]["median"] / one[1]["median"])) if one[2].get("median") and one[1].get("median") else 0):
            how = lost_answers(before, after) if verdict == "worse" else f"{duration(before['median'])} -> {duration(after['median'])}, {after['median'] / before['median']:.2f} times"
            print(f"{verdict}: {', '.join(key)}: {how}")
    print(f"{len(found['slower'])} slower, {len(found['faster'])} faster, {len(found['same'])} within the noise, {len(found['worse'])} worse answers, "
          f"{len(found['missing'])} not measured again")
    if not any(found[verdict] for verdict in ("slower", "faster", "same", "worse")):
        return 2
    return 1 if found["slower"] or found["worse"] else 0


if __name__ == "__main__":
    sys.exit(main())
