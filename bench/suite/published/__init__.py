"""The papers' experiments as their authors run them: PyTorch's autograd, one instance at a time, and cvxpy for the SVMs. Written from the
description of each setting in docs/experiments.md. An experiment is a function of the number of runs per setting; drawing figures is left out.

What is timed here is the way of working, so data are drawn anew (the sizes and laws are the papers').
"""

import dataclasses
import importlib


@dataclasses.dataclass(frozen=True)
class Job:
    name: str  # of `attsvm reproduce`
    full: int  # runs per setting in the paper
    where: str  # module and function
    quick: bool  # short enough for --quick


JOBS = [
    Job("single-input", 1, "prompt.single_input", False),
    Job("multi-input", 1, "prompt.multi_input", False),
    Job("joint-training", 1, "prompt.joint_training", False),
    Job("losses", 1, "prompt.losses", False),
    Job("gd-paths", 1, "papers.gd_paths", False),
    Job("local-convergence", 100, "papers.local_convergence", True),
    Job("convergence-types", 200, "papers.convergence_types", False),
    Job("multi-token", 500, "papers.multi_token", False),
    Job("quadratic-head", 100, "papers.quadratic_head", False),
    Job("svm-rank", 100, "papers.svm_rank", True),
]


def build(name, runs):
    """What a worker calls: the experiment once."""
    import torch
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)  # the best for tensors this small
    torch.manual_seed(0)
    module, function = next(job for job in JOBS if job.name == name).where.split(".")
    run = getattr(importlib.import_module(f"suite.published.{module}"), function)
    return lambda: run(runs)
