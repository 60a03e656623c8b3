"""What is measured. A section has a `run(session)` that adds rows; those of PEERS need the peers' environment."""

import dataclasses

from suite.programs import Programs
from suite.results import Results

OURS = ("limits", "kernels", "files", "many", "large", "steps", "scaling")
PEERS = ("solvers", "infeasible", "training", "saturation", "jobs")
ELSEWHERE = ("device",)  # asked for by name alone: on another machine, into a file of their own
ALL = OURS + PEERS + ELSEWHERE


def chosen(cases, title):
    return not cases or any(text in title for text in cases)


@dataclasses.dataclass
class Session:
    programs: Programs
    results: Results
    quick: bool  # fewer sizes and samples
    threads: int  # of this machine
    cases: list[str] | None = None  # of which a title must hold one

    def add(self, *words, **more):
        return self.results.add(*words, **more)
