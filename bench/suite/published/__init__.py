"""The papers' experiments as their authors run them: PyTorch's autograd, one instance at a time, and cvxpy for the SVMs. Written from the
description of each setting in docs/experiments.md. An experiment is a function of the number of runs a setting; drawing figures is left out.

What is timed here is the way of working, so data are drawn anew (the sizes and laws are the papers').
"""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Job:
    name: str  # of `attsvm reproduce`
    full: int  # runs a setting in the paper
    share: int  # runs that are timed
    run: Callable
    quick: bool  # short enough for --quick


def jobs():
    from suite.published import papers, prompt
    return [
        Job("single-input", 1, 1, prompt.single_input, False),
        Job("multi-input", 1, 1, prompt.multi_input, False),
        Job("joint-training", 1, 1, prompt.joint_training, False),
        Job("losses", 1, 1, prompt.losses, False),
        Job("gd-paths", 1, 1, papers.gd_paths, False),
        Job("local-convergence", 100, 1, papers.local_convergence, True),
        Job("convergence-types", 200, 2, papers.convergence_types, False),
        Job("multi-token", 500, 5, papers.multi_token, False),
        Job("quadratic-head", 100, 1, papers.quadratic_head, False),
        Job("svm-rank", 100, 1, papers.svm_rank, True),
    ]


def build(name, runs):
    """What a worker calls: the experiment once."""
    import cvxpy
    import torch
    assert cvxpy and torch
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)  # the best for tensors this small
    torch.manual_seed(0)
    job = next(job for job in jobs() if job.name == name)
    return lambda: job.run(runs)
