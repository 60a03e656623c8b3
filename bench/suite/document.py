"""bench/document: docs/benchmarks.md, its charts, and the figures of README.md, from a file of bench/run and nothing else."""

import argparse
import pathlib
import re
import shutil

from suite import charts, pages
from suite.programs import ROOT
from suite.results import load

BEGIN, END = "<!-- benchmarks: written by bench/document -->", "<!-- end of benchmarks -->"


def main():
    words = argparse.ArgumentParser(prog="bench/document", description="Writes docs/benchmarks.md, its charts and the figures of README.md.")
    words.add_argument("file", nargs="?", default=ROOT / "docs/benchmarks.json", help="of bench/run; it is kept as docs/benchmarks.json")
    words.add_argument("--no-readme", action="store_true", help="leave README.md alone (numbers of a busy machine)")
    words.add_argument("--root", default=ROOT, type=pathlib.Path, help="where docs/ and README.md are")
    chosen = words.parse_args()
    results, docs = load(chosen.file), chosen.root / "docs"
    kept = docs / "benchmarks.json"
    if pathlib.Path(chosen.file).resolve() != kept.resolve():
        shutil.copyfile(chosen.file, kept)
    drawn = charts.draw_all(results, docs / "benchmarks")
    device = ROOT / "docs/benchmarks_device.json"  # of bench/run --only device, on a machine with a GPU
    (docs / "benchmarks.md").write_text(pages.whole(results, drawn, load(device) if device.exists() else None))
    if not chosen.no_readme:
        readme = chosen.root / "README.md"
        readme.write_text(placed(readme.read_text(), pages.readme(results)))


def placed(text, table):
    """The text with what stands between the markers replaced."""
    between = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    if not between.search(text):
        raise SystemExit("README.md has no place for the figures")
    return between.sub(lambda _: f"{BEGIN}\n{table}{END}", text)


if __name__ == "__main__":
    main()
