"""Error of the gradient's direction at multiples of the max-margin W, where the softmax saturates, against a thousand digits (mpmath)."""

import numpy as np

from suite import saturation
from suite.instances import Instance

SCALES = (1, 10, 30, 100, 300, 1000)
TASK = Instance("random", 6, 8, 10)


def run(session):
    try:
        import mpmath  # noqa: F401
    except ImportError as error:
        session.add("saturation", "against many digits", "mpmath", status="not available", reason=str(error), error_direction=None, log10_gradient=0)
        return
    programs, path = session.programs, TASK.file(session.programs)
    solution = programs.folder / "saturation.npz"
    programs.attsvm("solve", path, "-o", solution, "--force")
    task, W = dict(np.load(path)), np.load(solution)["W"]
    for scale in SCALES[1::2] if session.quick else SCALES:
        exact, log_norm = saturation.exact_direction(task, scale * W, digits=50 + int(3 * 0.44 * scale))
        found = {f"attsvm, {name}": np.reshape(program_gradient(programs, path, solution, scale, name), W.shape) for name in ("exact", "plain")}
        found |= {f"PyTorch, {name}": torch_gradient(task, scale * W, autograd) for name, autograd in (("autograd", True), ("by hand", False))}
        for who, G in found.items():
            error = None if G is None else saturation.direction_error(G, exact)
            status = "not available" if G is None else "gradient is zero" if error is None else "ok"
            session.add("saturation", f"{scale} W^mm", who, status=status, error_direction=error, scale=scale, log10_gradient=log_norm)


def program_gradient(programs, path, start, scale, arithmetic):
    (line,) = programs.bench("gradient", path, start, "--scale", scale, "--arithmetic", arithmetic)
    return line["direction"]


def torch_gradient(task, W, autograd):
    try:
        return saturation.torch_gradient(task, W, autograd)
    except ImportError:
        return None
