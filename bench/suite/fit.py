"""How time grows: the exponent of a power law through measured points."""

import math
import statistics


def exponent(points):
    """Slope of log(seconds) over log(size), by least squares, and its standard error (None for two points)."""
    x, y = [math.log(size) for size, _ in points], [math.log(seconds) for _, seconds in points]
    slope, start = statistics.linear_regression(x, y)
    if len(points) < 3:
        return slope, None
    residual = sum((b - start - slope * a) ** 2 for a, b in zip(x, y))
    mean = statistics.fmean(x)
    return slope, math.sqrt(residual / (len(points) - 2) / sum((a - mean) ** 2 for a in x))
