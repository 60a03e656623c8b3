"""The results of a run: rows for tables, charts and comparisons, and the file that stores them.

A row is a dictionary: `section`, `case` (the problem), `who` (solver and setting), `status` and, where something was timed, `median`,
`low`, `high` (quartiles) and `count`, in seconds. `status` is "ok", or a word for what happened instead. Other keys are the section's own.
"""

import datetime
import importlib.metadata
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys

PACKAGES = (pathlib.Path(__file__).resolve().parents[1] / "requirements.txt").read_text().split()


def spread(samples):
    """Median and quartiles. One sample has no spread: its quartiles are not known."""
    if len(samples) < 2:
        return {"median": samples[0], "low": None, "high": None, "count": 1}
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return {"median": median, "low": low, "high": high, "count": len(samples)}


def finite(value):
    """The same without what JSON cannot hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(one) for one in value]
    return value


def key_of(row):
    return row["section"], row["case"], row["who"]


class Results:
    def __init__(self, machine, settings):
        self.machine, self.settings, self.rows, self.listeners = machine, settings, [], []

    def add(self, section, case, who, seconds=None, status="ok", **more):
        row = {"section": section, "case": case, "who": who, "status": status, **(spread(seconds) if seconds else {}), **more}
        self.rows.append(row)
        for listen in self.listeners:
            listen(row)
        return row

    def save(self, path):
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        head = {"machine": self.machine, "settings": self.settings}
        rows = ",\n".join("  " + json.dumps(finite(row), allow_nan=False) for row in self.rows)
        beside = path.with_suffix(".part")
        beside.write_text(json.dumps(finite(head), indent=1)[:-2] + ',\n "rows": [\n' + rows + "\n ]\n}\n")
        beside.replace(path)


def load(path):
    """Results of a file; exits with a message if it does not hold any."""
    try:
        data = json.loads(pathlib.Path(path).read_text())
        results = Results(data["machine"], data["settings"])
        results.rows = data["rows"]
        for row in results.rows:
            row["section"], row["case"], row["who"], row["status"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"{path}: not a file of bench/run ({type(error).__name__}: {error})", file=sys.stderr)
        raise SystemExit(2) from None
    return results



def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def instruction_sets():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return [name for name in ("avx2", "fma", "avx512f") if name in flags]


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def describe_machine(root):
    commit = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "processor": processor(),
        "vector": instruction_sets(),
        "cores": os.cpu_count(),
        "memory": memory,
        "system": platform.platform(),
        "load": list(os.getloadavg()),
        "commit": commit,
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
    }
