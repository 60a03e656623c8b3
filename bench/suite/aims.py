"""The project's aims, and whether a run met them."""

import dataclasses
from collections.abc import Callable

from suite.table import duration, number, times, tiny


@dataclasses.dataclass(frozen=True)
class Aim:
    subject: str
    what: str
    value: Callable  # of the results: a number, or None where it was not measured
    at_least: float | None = None
    at_most: float | None = None
    text: Callable = number

    def judged(self, results):
        """(asked, got, met) as text; None where it was not measured."""
        got = self.value(results)
        if got is None:
            return None
        met = got >= self.at_least if self.at_least is not None else got <= self.at_most
        bound = f"≥ {self.text(self.at_least)}" if self.at_least is not None else f"≤ {self.text(self.at_most)}"
        return bound, ("> " if isinstance(got, Beyond) else "") + self.text(got), met


class Beyond(float):
    """A ratio to a peer that ran out of time: the true one is larger."""


def rows(results, section, case, who=""):
    return [row for row in results.rows if row["section"] == section and row["case"] == case and row["who"].startswith(who)]


def least_ratio(case, who, setting="", section="solvers", gap=None):
    """Times ours of the best form of a peer, or of several peers, who all must have been tried; out of time counts as its limit. With `gap`
    only answers that good count."""
    def value(results):
        if not all(rows(results, section, case, one) for one in ([who] if isinstance(who, str) else who)):
            return None
        found = [Beyond(row["times_ours"]) if row["status"] == "out of time" else row["times_ours"]
                 for row in rows(results, section, case, who) if row["who"].endswith(setting) and row.get("times_ours")
                 and (gap is None or row["status"] == "out of time" or (row.get("gap") is not None and row["gap"] <= gap))]
        return min(found) if found else None
    return value


def of(section, case, who, key):
    def value(results):
        found = rows(results, section, case, who)
        return found[0].get(key) if found else None
    return value


def batched_ratio(param, ways, threads):
    """PyTorch's time per step and instance over ours of 1,000 at once on `threads`. Runs do not depend on each other: what PyTorch does on one
    thread it could do in one process per core, so that counts if it is better than its own threads."""
    def value(results):
        mine = rows(results, "training", f"(6,8,10) {param}, 1000 at once, {threads} threads", "attsvm")
        peers = [row["median"] / (threads / row["threads"]) for row in results.rows if row["section"] == "training"
                 and row["case"].startswith(f"(6,8,10) {param},") and row.get("median") and row["who"].startswith(ways)]
        return min(peers) / mine[0]["median"] if mine and peers else None
    return value


def percent(value):
    return f"{100 * value:.0f} %"


def solver_aims():
    fro, nuc = "Att-SVM fro ", "Att-SVM nuc "
    yield Aim(fro + "(6,8,10)", "times CVXOPT's better form, defaults", least_ratio(fro + "(6,8,10)", "CVXOPT", "default"), 100, text=times)
    yield Aim(fro + "(6,8,10)", "times cvxpy with the best of its solvers, defaults", least_ratio(fro + "(6,8,10)", "cvxpy", "default"), 1000, text=times)
    yield Aim(fro + "(6,8,10)", "gap", of("solvers", fro + "(6,8,10)", "attsvm", "gap"), at_most=1e-12, text=tiny)
    yield Aim("fro (6,8,10)", "solve_many, per problem", of("many", "fro (6,8,10)", "solve_many", "median"), at_most=20e-6, text=duration)
    for size in ("(15,5,20)", "(5,15,20)"):
        yield Aim(fro + size, "times CVXOPT's better form, defaults", least_ratio(fro + size, "CVXOPT", "default"), 40, text=times)
    yield Aim(fro + "(100,32,64)", "times CVXOPT's better form, defaults", least_ratio(fro + "(100,32,64)", "CVXOPT", "default"), 500, text=times)
    yield Aim(fro + "(100,32,64)", "times LIBLINEAR at its default accuracy", least_ratio(fro + "(100,32,64)", "LinearSVC", "default"), 100, text=times)
    yield Aim(fro + "(100,32,64)", "gap", of("solvers", fro + "(100,32,64)", "attsvm", "gap"), at_most=1e-9, text=tiny)
    yield Aim(nuc + "(6,8,10)", "times CVXOPT's dual SDP at equal accuracy", least_ratio(nuc + "(6,8,10)", "CVXOPT", "tight"), 80, text=times)
    yield Aim(nuc + "(6,8,10)", "times cvxpy + SCS, defaults", least_ratio(nuc + "(6,8,10)", "cvxpy + SCS", "default"), 200, text=times)
    for size, least in (("(15,5,20)", 100), ("(5,15,20)", 100), ("(30,16,32)", 150)):
        yield Aim(nuc + size, "times CVXOPT's dual SDP", least_ratio(nuc + size, "CVXOPT", gap=1e-6), least, text=times)
        yield Aim(nuc + size, "times SCS at 1e-9", least_ratio(nuc + size, "SCS", "tight", gap=1e-6), least, text=times)
    yield Aim(nuc + "(100,32,64)", "times SCS, or its time-out", least_ratio(nuc + "(100,32,64)", "SCS", gap=1e-5), 1000, text=times)
    yield Aim(nuc + "(100,32,64)", "times the best other peer", least_ratio(nuc + "(100,32,64)", ("CVXOPT", "cvxpy + Clarabel"), gap=1e-6), 100, text=times)
    for size in ("(6,8,10)", "(100,32,64)"):
        yield Aim(nuc + size, "gap", of("solvers", nuc + size, "attsvm", "gap"), at_most=1e-9, text=tiny)


def extreme_aims():
    for norm, who, least in (("max", "HiGHS", 20), ("l1", "HiGHS", 20), ("spec", "CVXOPT", 50)):
        for size in ("(6,8,10)", "(30,16,32)"):
            case = f"Att-SVM {norm} {size}"
            yield Aim(case, f"times {who}'s best form", least_ratio(case, who, "default"), least, text=times)
            yield Aim(case, "gap", of("solvers", case, "attsvm", "gap"), at_most=1e-9, text=tiny)


def large_aims():
    for norm, size, most in (("fro", "(1000,64,256)", 60), ("fro", "(2000,128,384)", 75), ("nuc", "(1000,64,256)", 450), ("nuc", "(2000,128,384)", 800)):
        for kind in ("separable", "low rank"):
            yield Aim(f"{norm} {size} {kind}", "limit passes to a gap of 1e-8", of("large", f"{norm} {size} {kind}", "attsvm", "passes"), at_most=most)
    yield Aim("nuc (2000,128,384) separable", "limit passes to a gap of 1e-6", of("large", "nuc (2000,128,384) separable", "attsvm", "passes_to_1e_6"), at_most=330)
    yield Aim("fro (10000,128,256) separable", "gap", of("large", "fro (10000,128,256) separable", "attsvm", "gap"), at_most=1e-8, text=tiny)
    yield Aim("fro (10000,128,256) separable", "memory, times the tokens", of("large", "fro (10000,128,256) separable", "attsvm", "memory"), at_most=1.6)
    yield Aim("fro (5000,32,32) separable", "times 25 normal matrices and factors at peak", of("large", "fro (5000,32,32) separable", "attsvm", "normal_matrices"), at_most=2)
    yield Aim("fro (2000,128,384) separable", "share of the limit of a pricing pass", of("large", "fro (2000,128,384) separable", "attsvm", "share"), 0.7, text=percent)


def training_aims(threads):
    for param in ("W", "KQ"):
        yield Aim(f"(6,8,10) {param}, one run", "times PyTorch as published", least_ratio(f"(6,8,10) {param}, 1 at once, 1 threads", "PyTorch, published", section="training"), 150, text=times)
        yield Aim(f"(6,8,10) {param}, 1,000 runs", "times PyTorch as published", batched_ratio(param, "PyTorch, published", threads), 1000, text=times)
        yield Aim(f"(6,8,10) {param}, 1,000 runs", "times PyTorch batched, the best way", batched_ratio(param, "PyTorch, batched", threads), 20, text=times)
    for who, most in (("steepest:max", 1.5), ("signum", 1.5), ("adam", 1.5), ("steepest:spec", 3), ("muon", 3)):
        yield Aim(f"(6,8,10) W, {who}", "times a step of ngd", of("steps", "(6,8,10) W by optimizer", who, "times_ngd"), at_most=most, text=times)
    for size in ("(1000,128,256)", "(4000,128,256)"):
        yield Aim(f"{size} W, one step", "share of two reads of the tokens", of("steps", f"{size} W, 1 at once", f"exact, {threads} threads", "share_of_two_reads"), 0.7, text=percent)
        yield Aim(f"{size} W, one step", "times the best PyTorch", least_ratio(f"{size} W, 1 at once, {threads} threads", "PyTorch", section="training"), 3, text=times)
    yield Aim("svm-rank", "the whole grid", of("jobs", "svm-rank, at full count", "attsvm", "median"), at_most=60, text=duration)
    yield Aim("reproduce all", "at full counts", of("jobs", "all, at full counts", "attsvm", "median"), at_most=180, text=duration)


def all_aims(threads):
    return [*solver_aims(), *extreme_aims(), *large_aims(), *training_aims(threads)]
