from __future__ import annotations

from typing import Any, NamedTuple

from . import _arguments as arguments
from . import _core, _progress
from ._errors import Interrupted, warn_of_unsolved
from ._results import FieldsResult, copied, table
from ._run import Run, Steps
from ._solve import solve_state
from ._task import Task, unwrap
from ._types import Floats, Integers, Optimizer, Status


def correlation(A: Any, B: Any) -> float:
    """⟨A, B⟩ / (|A| |B|) of two matrices, solutions or runs; NaN where one is zero.

    >>> round(correlation([[1, 0], [0, 1]], [[2, 0], [0, 0]]) ** 2, 12)
    0.5
    """
    return _core.correlation(arguments.weights(A, "A"), arguments.weights(B, "B"))


class SupportToken(NamedTuple):
    """A token that the selected one is ahead of by exactly the margin."""
    query: int
    token: int
    score_gap: float  #: positive in a locally optimal selection
    slack: float


class Tie(NamedTuple):
    """Tokens of a query that share the best score."""
    query: int
    tokens: list[int]


class Check(FieldsResult):
    """A selection or a run, checked against the theory.

    `verdict` "global", "local", "neither" or "infeasible" (no W separates the selection), `reason` in words; `optimal`,
    `selected` (q,) and `kept` (q, T) bool;
    `separable`, `is_optimal`, `locally_optimal`; `support` and `ambiguous`, lists of SupportToken; `ties`;
    `objective_fro`, `objective_nuc` (NaN where there is none); with a run `record_step` and `correlation_fro`,
    `correlation_nuc` (r,) at every recorded point, and for heads that keep sets `correlation_gen`,
    `correlation_equivalence`, `correlation_single`, `R`; `complete`: False if the time limit ended a solve; `unsolved`,
    a dict by the name of the norm: how solves ended ("limit", "stalled") that left something unknown.

    With a run also dicts by the name of the norm ("fro", "nuc", "spec", "max", "l1", and the implied one): `rho` (r,),
    the smallest margin of W per norm as a share of the largest that any W has, 1 for an optimum, NaN where it is not
    defined, with one entry for W if the run has no records; `rho_status`, how the solve in this norm ended; and over
    the last decade of steps `rho_rises`, True, False or None, and `rho_exponent`, a in 1 − rho ≈ c·step^a or NaN.
    `largest_margin` is 1/the least norm. `implied_norm` is the norm that theory names for the optimizer, or None;
    `implied_norm_proven` tells whether for softmax attention, `implied_norm_why` in words; `advice` says which step
    size, beta or epsilon would bring the run closer, "" if none is known to; `answer` says in one sentence whether the
    run converges, to what, and how fast.
    """

    __slots__ = ()

    def _shown(self) -> list[tuple[str, Any]]:
        shown = [(name, self._values[name]) for name in ("verdict", "reason", "optimal", "selected", "separable")]
        if len(self.correlation_fro):
            shown += [("correlation_fro", self.correlation_fro[-1]), ("correlation_nuc", self.correlation_nuc[-1])]
        if self._values.get("implied_norm"):
            shown += [("implied_norm", self.implied_norm), ("rho", self.rho[self.implied_norm][-1])]
        return shown


class PriorityGraph(NamedTuple):
    """What the sequences of a next-token task that end in one token say about the order of tokens."""
    last: int  #: the token that they end in
    word: str  #: its word, "#17" without a vocabulary
    sequences: int  #: how many there are
    tokens: list[int]  #: that occur in them, ascending
    components: list[list[int]]  #: of several tokens, which no W can order
    edges: list[tuple[int, int]]  #: (label, other token of its sequence)


class NextTokenCheck(Check):
    """A next-token task, and a run on it, checked against the theory.

    `graph`, a list of PriorityGraph, one per last token; in all of them `graphs`, `components` of several tokens,
    `edges` and `orders`, the edges between components; `words`, one line per component that cannot be ordered, with a
    shortest cycle; `separable`, whether a W keeps all orders (None: not decided); `objective_fro`, `objective_nuc`, the
    norms of the graph SVM (NaN where there is none); `finite_dimension`, `finite_norm` and `finite_loss`, the part of W
    that stays finite and its loss (None and NaN if too many tokens are tied); `complete` and `unsolved` as in Check.

    With a run also `record_step`, and at every recorded point `correlation_fro`, `correlation_nuc` and
    `finite_distance` (r,), how far the part of W is from its limit (empty if there is none); `rho` and what Check has
    beside it, to the graph SVM, except `advice` and `answer`.
    """

    __slots__ = ()
    graph: list[PriorityGraph]
    graphs: int
    components: int
    orders: int
    edges: int
    words: list[str]
    separable: bool | None
    objective_fro: float
    objective_nuc: float
    finite_dimension: int | None
    finite_norm: float
    finite_loss: float
    correlation_fro: Floats
    correlation_nuc: Floats
    finite_distance: Floats
    complete: bool
    unsolved: dict[str, Status]

    def _shown(self) -> list[tuple[str, Any]]:
        shown = [(name, self._values[name]) for name in ("graphs", "components", "orders", "edges", "separable")]
        shown += [(name, self._values[name][-1]) for name in ("correlation_fro", "finite_distance")
                  if len(self._values[name])]
        if self._values.get("implied_norm"):
            shown += [("implied_norm", self.implied_norm), ("rho", self.rho[self.implied_norm][-1])]
        return shown


def check(task: Task, run: Any = None, *, steps: Steps | None = None, optimizer: Optimizer | None = None,
          select: Any = None, norms: Any = (), threshold: float = 1e-3, time_limit: float | None = None,
          threads: int | None = None, progress: bool | None = None) -> Check:
    """Checks a selection against the theory, or what a run selected and how close it is to its SVM. Of a next-token
    task it checks the labels instead of a selection, and returns a `NextTokenCheck`.

    Parameters
    ----------
    task : Task with a head, or of next-token prediction
    run : Run, or weights: W (d, dz), or r of them; optional
        Its attention selects tokens; with a nonlinear head, all tokens with attention of at least `threshold` are kept.
        InputError if it is a run of another task.
    steps, optimizer : as in `Run.from_snapshots`, with weights instead of a run
    select : as in `solve`, optional
        The selection to check if there is no run.
    norms : norm as in `solve`, or a list of them, optional
        In which to judge the run besides "fro", "nuc", "spec", "max", "l1" and the implied one.
    time_limit : seconds, optional
        Norms whose solve it ends have no rho, and `complete` is False.
    threads, progress : as in `solve`

    `ConvergenceWarning` names the norms whose SVM was not solved. Ctrl-C raises `Interrupted`, whose `result` has what
    is known.

    >>> import attsvm
    >>> task = attsvm.generate("random", seed=1)
    >>> check = attsvm.check(task, attsvm.train(task))
    >>> check.verdict, check.reason
    ('local', 'every selected token scores above its support tokens, though not all are best')
    >>> bool(check.correlation_fro[-1] > 0.998)
    True
    >>> check.implied_norm, check.rho_rises["fro"], round(float(check.rho["fro"][-1]), 2)
    ('fro', True, 0.95)

    After token 1 the label was once 0 and once 1, where the other was there too:

    >>> task = attsvm.Task(ids=[0, 2, 1, 1, 0, 1], offsets=[0, 3, 6], embeddings=[[1, 0], [0, 1], [1, 1]], next=[0, 1])
    >>> attsvm.check(task)
    NextTokenCheck(graphs=1, components=1, orders=1, edges=3, separable=True)
    >>> attsvm.check(task).words
    ['after «#1»: «#0» before «#1», and back']
    """
    core, wanted = unwrap(task), arguments.norms(norms)
    limit, workers = arguments.positive(time_limit, "time_limit"), arguments.threads(threads)
    if run is None:
        if wanted:
            raise ValueError("norms need a run: they are about its margins")
        if task.kind == "next-token":
            return _check_next_token(task, None, select, wanted, limit, workers, progress)
        chosen = None if select is None else arguments.selection(select, core.longest)
        with _progress.bar(progress, "check", None, solve_state) as bar:
            values, interrupted = _core.check_selection(core, chosen, limit, workers, bar)
    else:
        if select is not None:
            raise ValueError("select cannot be used with a run: the run determines the selection")
        if not isinstance(run, Run):
            run = Run.from_snapshots(task, run, steps=steps, optimizer=optimizer)
        elif steps is not None or optimizer is not None:
            raise ValueError("steps and optimizer go with weights; a Run has its own")
        if task.kind == "next-token":
            return _check_next_token(task, run, None, wanted, limit, workers, progress)
        with _progress.bar(progress, "check", None, solve_state) as bar:
            values, interrupted = _core.check_run(core, run._core_arrays(), wanted,
                                                  arguments.number(threshold, "threshold"), limit, workers, bar)
        if "record_step" in run.to_dict():
            values["record_step"] = run.record_step
    for name in ("support", "ambiguous"):
        values[name] = [SupportToken(*one) for one in values[name]]
    values["ties"] = [Tie(*one) for one in values["ties"]]
    return _checked(Check(values), interrupted)


def _check_next_token(task: Task, run: Run | None, select: Any, norms: list[str], limit: float, workers: int,
                      progress: bool | None) -> Check:
    if select is not None:
        raise ValueError("select cannot be used with a next-token task: it has labels instead of a selection")
    arrays = None if run is None else run._core_arrays()
    with _progress.bar(progress, "check", None, solve_state) as bar:
        values, interrupted = _core.check_next_token(unwrap(task), arrays, norms, limit, workers, bar)
    values["graph"] = [PriorityGraph(*one) for one in values["graph"]]
    if run is not None and "record_step" in run.to_dict():
        values["record_step"] = run.record_step
    return _checked(NextTokenCheck(values), interrupted)


def _checked(result: Check, interrupted: bool) -> Check:
    if interrupted:
        raise Interrupted("check was interrupted; .result has what is known", result)
    warn_of_unsolved("check", result.unsolved)
    return result


class LocalOptima(NamedTuple):
    """What `local_optima` found."""
    selections: int  #: how many were tested
    separable: int
    locally_optimal: Integers  #: (m, q) tokens, in lexicographic order

    def to_dict(self, *, copy: bool = False) -> dict[str, Any]:
        """All fields by name. With `copy`, arrays are copies that may be changed."""
        return copied(self._asdict()) if copy else self._asdict()

    def _repr_html_(self) -> str:
        return table(self, [*self._asdict().items()])


def local_optima(task: Task, limit: int = 1_000_000, *, threads: int | None = None,
                 progress: bool | None = None) -> LocalOptima:
    """Every locally optimal selection of a small task, by testing all selections.

    >>> import attsvm
    >>> found = attsvm.local_optima(attsvm.generate("random", n=2, T=3, d=4, seed=1))
    >>> found.selections, len(found.locally_optimal) >= 1
    (9, True)
    """
    with _progress.bar(progress, "local_optima", None, lambda done: (done, "selections")) as bar:
        selections, separable, optima, interrupted = _core.enumerate_local_optima(
            unwrap(task), arguments.integer(limit, "limit", 1), arguments.threads(threads), bar)
    found = LocalOptima(selections, separable, optima)
    if interrupted:
        raise Interrupted("local_optima was interrupted; .result has what was found", found)
    return found


class Claim(NamedTuple):
    """A statement, in our own words, and the experiment that tests it."""
    name: str
    statement: str
    source: str  #: what the papers' abstracts say about it
    tested: str  #: the tasks, and when the claim counts as held
    measure: str  #: the quantity whose largest value is `ClaimResult.worst`
    tasks: int  #: default number of tasks


class ClaimResult(NamedTuple):
    """The results of testing a claim."""
    claim: Claim
    tasks: int
    held: int
    worst: float
    figures: dict[str, float]  #: other numbers that the experiment found
    counterexample: Task | None  #: the worst task on which it failed; None if it held on all
    words: str  #: what happened there

    def to_dict(self) -> dict[str, Any]:
        """All fields by name."""
        return self._asdict()

    def _repr_html_(self) -> str:
        return table(self, [("claim", self.claim.name), ("statement", self.claim.statement), ("tasks", self.tasks),
                            ("held", self.held), ("worst", self.worst), ("words", self.words)])


def list_claims() -> list[Claim]:
    """The statements that `claims` tests.

    >>> [claim.name for claim in list_claims()][:2]
    ['separability', 'capacity-always']
    """
    return [Claim(*one) for one in _core.claims()]


def claims(*names: Any, tasks: int | None = None, seed: int = 0, threads: int | None = None,
           progress: bool | None = None) -> list[ClaimResult]:
    """Tests statements about training and its SVMs on random tasks; all of them if none is named.

    A claim that fails somewhere is a finding, not an error: it is counted, and the worst such task is returned.

    >>> import attsvm
    >>> [result] = attsvm.claims("separability", tasks=5)
    >>> result.tasks, result.held
    (5, 5)
    """
    wanted: list[Claim] = []
    for name in arguments.names(names):
        wanted += [claim for claim in map(Claim._make, _core.claims(name)) if claim not in wanted]
    results: list[ClaimResult] = []
    for claim in wanted if names else list_claims():
        with _progress.bar(progress, claim.name, tasks or claim.tasks, lambda done: (done, "")) as bar:
            facts, core, extras, interrupted = _core.test_claim(
                claim.name, 0 if tasks is None else arguments.integer(tasks, "tasks", 1), arguments.seed(seed),
                arguments.threads(threads), bar)
        results.append(ClaimResult(claim, facts["tasks"], facts["held"], facts["worst"], facts["figures"],
                                   None if core is None else Task._of(core, extras), facts["words"]))
        if interrupted:
            raise Interrupted(f"claims was interrupted; .result has {len(results)} claims", results)
    return results
