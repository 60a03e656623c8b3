"""bench/run: measures, prints a table, writes the numbers to a file."""

import argparse
import importlib
import os
import pathlib
import subprocess
import sys
import time

from suite import sections, table
from suite.programs import ROOT, Programs
from suite.results import Results, describe_machine, load


def main():
    words = argparse.ArgumentParser(prog="bench/run", description="Measures, prints a table, writes the numbers to a file.")
    words.add_argument("--peers", action="store_true", help="also measure other solvers (make bench-peers installs them)")
    words.add_argument("--quick", action="store_true", help="fewer sizes and samples: under 5 minutes")
    words.add_argument("--only", metavar="SECTION,...", help="sections to measure, of " + ", ".join(sections.ALL))
    words.add_argument("--case", action="append", metavar="TEXT", help="only cases of the section solvers whose title contains this; can be repeated")
    words.add_argument("--build", default=ROOT / "build/bench", help="build tree of the preset bench")
    words.add_argument("--into", metavar="FILE", help="results file in which the measured sections are replaced")
    words.add_argument("-o", "--out", help="default: build/results/bench.json, or peers.json with --peers")
    chosen = words.parse_args()

    names = chosen.only.split(",") if chosen.only else sections.OURS + (sections.PEERS if chosen.peers else ())
    if chosen.case and names != ["solvers"]:
        words.error("--case is for --only solvers")
    if unknown := set(names) - set(sections.ALL):
        words.error(f"no section {', '.join(sorted(unknown))}")
    out = pathlib.Path(chosen.out or chosen.into or ROOT / "build/results" / ("peers.json" if chosen.peers else "bench.json"))
    unfinished = out.with_suffix(".unfinished.json")  # what an interrupt leaves behind; an earlier complete file stays until there is another
    results = Results(describe_machine(ROOT), {"quick": chosen.quick, "sections": list(names), "complete": False})
    before = load(chosen.into) if chosen.into else None
    if before:
        results.rows = [row for row in before.rows if row["section"] not in names or not sections.chosen(chosen.case, row["case"])]
        results.settings["sections"] = list(dict.fromkeys([*before.settings["sections"], *names]))
        results.settings["quick"] = before.settings["quick"]
        results.settings["quick_sections"] = [*(name for name in before.settings.get("quick_sections", []) if name not in names), *(names if chosen.quick else ())]
        results.settings["peers"] = before.settings.get("peers", [])
        results.settings["earlier"] = [*before.settings.get("earlier", []), before.machine]  # the machine's load and date then
    if "solvers" in names:
        from suite.peers import all_peers
        results.settings["peers"] = [{"name": peer.name, "package": peer.package, "form": peer.form, "tight": peer.tight} for peer in all_peers()]
    begin = time.monotonic()

    def keep():
        results.machine["seconds"], results.machine["load_end"] = time.monotonic() - begin, list(os.getloadavg())
        results.save(unfinished)
    results.listeners.append(lambda row: (print(table.line(row), flush=True), keep()))
    session = sections.Session(Programs(chosen.build), results, chosen.quick, os.cpu_count(), chosen.case)
    failed = []
    for name in names:
        print(f"\n{name}: {table.heading(name)}", flush=True)
        try:
            importlib.import_module(f"suite.sections.{name}").run(session)
        except (RuntimeError, subprocess.TimeoutExpired) as error:  # the other sections are still worth having
            failed.append(name)
            print(f"{name} ended early: {error}", file=sys.stderr, flush=True)
    whole = before.settings.get("complete", False) if before else not chosen.case and set(names) >= set(sections.OURS)
    results.settings["complete"] = not failed and whole
    keep()
    unfinished.replace(out)
    print(f"\n{len(results.rows)} rows in {time.monotonic() - begin:.0f} s: {out}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
