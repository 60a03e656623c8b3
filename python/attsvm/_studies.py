from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Callable, NamedTuple

from . import _arguments as arguments
from . import _core, _progress
from ._errors import Interrupted
from ._files import existing
from ._results import table


class StudyFacts(NamedTuple):
    """An experiment in words."""
    name: str
    title: str
    setting: str
    paper: str  #: what the paper shows, or why the experiment is our own
    published: bool  #: a paper has it


class Finding(NamedTuple):
    """What is published, or expected where the experiment is our own, and what this study found."""
    paper: str
    ours: str
    why: str  #: why the two differ; empty if they do not


class StudyProgress(NamedTuple):
    """The state of a reproduction."""
    study: str
    cell: str
    done: int
    wanted: int
    draws: int
    share: float  #: of all the work, 0 to 1, estimated
    seconds: float
    seconds_left: float  #: estimated; NaN: too early to tell


class StudyResult(NamedTuple):
    """The results of one experiment."""
    name: str
    title: str
    published: bool  #: a paper has this experiment
    complete: bool
    cells: int
    runs: int  #: accepted
    draws: int  #: accepted and rejected
    findings: list[Finding]
    files: list[str]
    folder: str

    @property
    def data(self) -> dict[str, Any]:
        """The experiment's data.json: settings, columns and rows, findings, and the figure as curves."""
        with open(os.path.join(self.folder, self.name, "data.json"), encoding="utf-8") as file:
            data: dict[str, Any] = json.load(file)
        return data

    def to_dict(self) -> dict[str, Any]:
        """All fields by name."""
        return self._asdict()

    def _repr_html_(self) -> str:
        return table(self, [("name", self.name), ("title", self.title), ("complete", self.complete),
                            ("runs", self.runs), ("draws", self.draws),
                            *((finding.paper, finding.ours) for finding in self.findings)])


class StudyReport(NamedTuple):
    """The results of `reproduce` or `sweep`."""
    studies: list[StudyResult]
    stopped: str  #: why it stopped early; empty if everything is done
    seed: int
    page: str  #: the overview page (HTML) of all experiments in the folder
    figure_problem: str  #: why figures could not be drawn; empty if they were

    def __getitem__(self, name: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A study by its name."""
        if isinstance(name, str):
            for study in self.studies:
                if study.name == name:
                    return study
            raise KeyError(name)
        return tuple.__getitem__(self, name)

    def to_dict(self) -> dict[str, Any]:
        """All fields by name."""
        return self._asdict()

    def _repr_html_(self) -> str:
        return table(self, [("studies", [study.name for study in self.studies]), ("stopped", self.stopped),
                            ("seed", self.seed), ("page", self.page), ("figure_problem", self.figure_problem)])


def list_studies() -> list[StudyFacts]:
    """The published experiments, in the order of the papers, then our own.

    >>> [study.name for study in list_studies()][-9:]
    ['atlas', 'rates', 'positions', 'decay', 'capacity', 'next-token', 'router', 'heads',
     'layers']
    """
    return [StudyFacts(*one) for one in _core.studies()]


def _describe(study: str, cell: str, done: int, wanted: int, draws: int, share: float, *_: float) -> tuple[int, str]:
    return round(100 * share), f"{study} {cell}: {done} of {wanted} runs"


def _run(names: list[str], sweep_file: str, out: Any, runs: int | None, seed: int | None, force: bool, resume: bool,
         time_limit: float | None, export: str | None, threads: int | None, progress: bool | None,
         callback: Callable[[StudyProgress], Any] | None) -> StudyReport:
    folder = os.fspath(out)
    with _progress.bar(progress, "reproduce", 100, _describe) as bar:
        studies, stopped, used, page, problem, interrupted = _core.run_studies(
            names, sweep_file, folder, 0 if runs is None else arguments.integer(runs, "runs", 1),
            None if seed is None else arguments.seed(seed), bool(force), bool(resume),
            arguments.positive(time_limit, "time_limit"),
            "" if export is None else arguments.word(export, "export"), arguments.threads(threads),
            _progress.receiver(callback, StudyProgress), bar)
    results: list[StudyResult] = []
    for one in studies:
        facts: dict[str, Any] = {**one, "findings": [Finding(*each) for each in one["findings"]], "folder": folder}
        results.append(StudyResult(**facts))
    report = StudyReport(results, stopped, used, page, problem)
    if interrupted:
        raise Interrupted("interrupted; the same call continues from here, and .result has the results so far", report)
    return report


def reproduce(*names: Any, out: Any = "reproduction", runs: int | None = None, seed: int | None = None,
              resume: bool = True, time_limit: float | None = None, export: str | None = None,
              threads: int | None = None, progress: bool | None = None,
              callback: Callable[[StudyProgress], Any] | None = None) -> StudyReport:
    """Runs published experiments, as `attsvm reproduce` does, and writes their data, figures and page to `out`.

    Parameters
    ----------
    names : str
        As `list_studies` gives them, or "all".
    out : path of a folder
        Finished runs are kept there; the same call continues after a stop (`resume`).
    runs : int, optional
        Accepted runs per setting; default as published.
    export : "csv" or "json", optional
        Also write all runs to this format.
    callback : function of a StudyProgress, optional
        Called between batches; a true return value stops.

    >>> import attsvm, tempfile
    >>> report = attsvm.reproduce("svm-rank", runs=1, out=tempfile.mkdtemp())
    >>> report["svm-rank"].complete, report["svm-rank"].data["columns"][0]["name"]
    (True, 'n')
    """
    wanted = arguments.names(names)
    if not wanted:
        raise TypeError('reproduce needs names, or "all"; see list_studies()')
    return _run(wanted, "", out, runs, seed, False, resume, time_limit, export, threads, progress, callback)


def sweep(description: Any, *, out: Any = "sweeps", runs: int | None = None, seed: int | None = None,
          force: bool = False, resume: bool = True, time_limit: float | None = None, export: str | None = None,
          threads: int | None = None, progress: bool | None = None,
          callback: Callable[[StudyProgress], Any] | None = None) -> StudyReport:
    """Runs an experiment of your own, described by a dict or a JSON file (docs/experiments.md lists the fields).

    Results of a different sweep of the same name in `out` are replaced only with `force`.

    >>> import attsvm, tempfile
    >>> report = attsvm.sweep({"name": "width", "task": {"kind": "random"}, "sizes": {"n": [4], "T": [4], "d": [6]},
    ...                        "measure": ["feasible", "rank_fro"], "runs": 3}, out=tempfile.mkdtemp())
    >>> report.studies[0].runs
    3
    """
    if isinstance(description, dict):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "sweep.json")
            with open(file, "w", encoding="utf-8") as out_file:
                json.dump(description, out_file)
            return _run([], file, out, runs, seed, force, resume, time_limit, export, threads, progress, callback)
    return _run([], existing(description), out, runs, seed, force, resume, time_limit, export, threads, progress,
                callback)
