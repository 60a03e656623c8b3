"""Rows as lines of text."""

HEADINGS = {
    "limits": "what this machine can do at most",
    "kernels": "vector loops, and their share of the plainest loop",
    "files": "loading a task, and its share of read() speed",
    "many": "small problems, seconds per problem",
    "large": "large problems in limit passes, and the share of the limit that a pricing pass reaches",
    "steps": "training steps of ours, seconds per step and instance, and the share of the limit",
    "scaling": "how time grows",
    "solvers": "the same files through every solver; gap, violation and rank are what the answer really has",
    "infeasible": "rows that no W meets: who notices",
    "training": "steps in PyTorch, seconds per step and instance",
    "saturation": "error of the gradient's direction where the softmax saturates",
    "device": "batches on a GPU, seconds per step and instance",
    "jobs": "published experiments as their authors run them, and by attsvm reproduce",
}
UNITS = ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))

COMPARABLE = 1e-6  # a gap up to which a peer's answer counts as one


def heading(section):
    return HEADINGS[section]


def duration(seconds):
    """Three digits and a unit."""
    if seconds is None:
        return "-"
    if seconds >= 1000:
        return f"{seconds:,.0f} s"
    factor, unit = next((one for one in UNITS if abs(seconds) >= one[0]), UNITS[-1])
    return f"{seconds / factor:.3g} {unit}"


def number(value, digits=3):
    return "-" if value is None else f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.{digits}g}"


def tiny(value):
    return "-" if value is None else "0" if value == 0 else f"{value:.0e}"


def times(value):
    return "-" if value is None else f"{number(value)}x"


def spread_text(row):
    """Quartiles, relative to the median."""
    if row.get("low") is None:
        return ""
    return f"{100 * (row['low'] / row['median'] - 1):+.0f}/{100 * (row['high'] / row['median'] - 1):+.0f} %"


def extras(row):
    """What a row has beside its time, in words."""
    words = []
    if row.get("times_ours") is not None and row["who"] != "attsvm":
        words.append(("over " if row["status"] == "out of time" else "") + times(row["times_ours"]) + " ours")
    for key, text in (("speed", lambda v: f"{v / 1e9:.1f} G{row['unit']}"), ("passes", lambda v: f"{v:.0f} limit passes"), ("share", lambda v: f"{100 * v:.0f} % of the limit"),
                      ("steps_per_second", lambda v: f"{v:.3g}/s"), ("exponent", lambda v: f"{row['variable']}^{v:.2f}"), ("gap", lambda v: f"gap {tiny(v)}"), ("violation", lambda v: f"violation {tiny(v)}"), ("rank", lambda v: f"rank {v}"),
                      ("error_direction", lambda v: f"error {tiny(v)}"), ("ratio", lambda v: f"{times(v)}"), ("says", lambda v: "" if v == "optimal" else f"says {v}"),
                      ("verdict", str), ("wrong", lambda v: f"{v} wrong"), ("memory", lambda v: f"memory {v:.2f}"), ("extrapolated", lambda v: f"whole {duration(v)}"), ("reason", str)):
        if row.get(key) is not None:
            words.append(text(row[key]))
    return ", ".join(word for word in words if word)


def line(row):
    time = duration(row.get("median")) if row["status"] == "ok" or row.get("median") is not None else row["status"]
    if row["status"] == "out of time":
        time = f"> {row['limit']:g} s"
    return f"  {row['case']:<34}{row['who']:<34}{time:>12} {spread_text(row):>12}  {extras(row)}"
