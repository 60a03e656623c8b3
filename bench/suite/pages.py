"""A run as Markdown: docs/benchmarks.md (`whole`) and the figures of README.md (`readme`). Every number comes from the rows."""

import textwrap

from suite.aims import Beyond, all_aims, batched_ratio, least_ratio, of, percent
from suite.table import COMPARABLE, duration, number, spread_text, times, tiny

BUSY = 0.25  # load per core beyond which a run is provisional


def table(columns, rows):
    """Markdown; columns: (title, function of a row)."""
    lines = ["| " + " | ".join(title for title, _ in columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(show(row)) for _, show in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def shown(key, text=str, empty=""):
    return lambda row: empty if row.get(key) is None else text(row[key])


def time_of(row):
    if row["status"] == "out of time":
        return f"out of time ({row['limit']:g} s)"
    if row.get("median") is None:
        return row["status"]
    return duration(row["median"])


def solver_time(row):
    return f"too large ({row['matrix_bytes'] / 1e9:.0f} GB of rows)" if row["status"] == "too large" else time_of(row)


def ratio_of(row):
    if row.get("times_ours") is None:
        return ""
    text = ("> " if row["status"] == "out of time" else "") + times(row["times_ours"])
    return f"**{text}**" if row["times_ours"] < 1 else text


def ratio_text(ratio):
    return "" if ratio is None else ("> " if isinstance(ratio, Beyond) else "") + times(ratio)


def provisional(results):
    """Whether other work, or what was left of it, shared the machine with any of the runs that the rows are of."""
    return any(machine["load"][0] > BUSY * machine["cores"] for machine in (results.machine, *results.settings.get("earlier", [])))


def machine_text(results):
    m = results.machine
    packages = ", ".join(f"{name} {version}" for name, version in m["packages"].items() if version)
    missing = ", ".join(name for name, version in m["packages"].items() if not version)
    text = (f"{m['processor']}, {m['cores']} cores ({', '.join(m['vector'])}), {m['memory'] / 2**30:.0f} GiB; {m['system']}; {m['date'][:10]}, commit {m['commit']}; "
            f"load {m['load'][0]:.1f} at the start, {m['load_end'][0]:.1f} at the end; {m['seconds'] / 60:.0f} minutes in all. Python {m['python']}"
            + (f", {packages}" if packages else "") + (f"; not installed: {missing}" if missing else "") + ".\n")
    for then in results.settings.get("earlier", []):
        text += f"\nSome rows are of an earlier run: commit {then['commit']}, load {then['load'][0]:.1f} at the start, {then['load_end'][0]:.1f} at the end; {then['seconds'] / 60:.0f} minutes.\n"
    if provisional(results):
        text += "\n**Provisional: other work shared the machine while some of this was measured. Ratios of small rows and shares of limits are rough.**\n"
    if results.settings["quick"]:
        text += "\n**A quick run: fewer sizes, fewer samples.**\n"
    if some := results.settings.get("quick_sections"):
        text += f"\n**From the quick form (fewer sizes, fewer samples): {', '.join(dict.fromkeys(some))}.**\n"
    if not results.settings.get("complete"):
        text += "\n**Not complete: a section ended early, or not all of it was asked for.**\n"
    return text


def section_rows(results, name):
    return [row for row in results.rows if row["section"] == name]


def by_case(rows):
    return {case: [row for row in rows if row["case"] == case] for case in dict.fromkeys(row["case"] for row in rows)}


def picture(drawn, name, text):
    return f"\n![{text}](benchmarks/{name}.svg)\n" if name in drawn else ""


def aims_text(results):
    """What was asked for, met or not."""
    judged = [(aim, aim.judged(results)) for aim in all_aims(results.machine["cores"])]
    judged = [(aim, found) for aim, found in judged if found]
    if not judged:
        return ""
    missed = sum(not found[2] for _, found in judged)
    columns = [("problem", lambda one: one[0].subject), ("what", lambda one: one[0].what), ("aim", lambda one: one[1][0]), ("measured", lambda one: one[1][1]),
               ("", lambda one: "" if one[1][2] else "**missed**")]
    return f"\n## What we set ourselves\n\n{len(judged) - missed} of {len(judged)} aims are met in this run, {missed} missed.\n\n" + table(columns, judged)


def solvers_text(results, drawn):
    rows = section_rows(results, "solvers")
    if not rows:
        return ""
    columns = [("solver", lambda row: f"**{row['who']}**" if row["who"] == "attsvm" else row["who"]), ("time", solver_time), ("spread", spread_text),
               ("times ours", lambda row: "" if row["who"] == "attsvm" else ratio_of(row)), ("gap", shown("gap", tiny)), ("violation", shown("violation", tiny)), ("rank", shown("rank")),
               ("says", lambda row: row.get("reason") or ("" if row.get("says") in (None, "optimal") else row["says"]))]
    text = """
## Solvers

Every solver that can express the problem gets the same files, each in a process of its own, warm, alternating with attsvm. Times are medians, with quartiles relative to them. *Gap*, *violation* and *rank* are not what a solver claims: its W goes to a file, and `attsvm verify` recomputes the violation of the raw rows. The gap is that of W made feasible (projected onto equations, scaled until every row is met) against the lower bound that attsvm has proven. The rank counts singular values above 1e-6 of the largest. The answer of attsvm is verified with its proof.

*default* means a solver's own settings, *tight* those that should give 1e-8. *too large*: the rows, written out, do not fit into memory. attsvm runs on one thread below 10,000 rows and on all threads above; the other solvers choose for themselves.

What flatters whom: every solver solves the same problem again and again, which helps branch predictors; "Small problems" below has the time over many different ones. The other solvers start from a Gram matrix or rows that are ready-made (cvxpy builds its problem at every solve, which is how it is used) and are called from Python. attsvm is called from C++ on a task in memory, keeps its memory from solve to solve, starts from the tokens, and works in the span of rows and queries, which an expert could also arrange for the others.
"""
    text += picture(drawn, "frobenius", "Seconds against size, Frobenius norm, one line per solver") + picture(drawn, "nuclear", "The same for the nuclear norm")
    text += picture(drawn, "accuracy-frobenius", "Time against honest gap at (15,5,20), Frobenius norm") + picture(drawn, "accuracy-nuclear", "The same for the nuclear norm")
    for case, found in by_case(rows).items():
        text += f"\n### {case}\n\n" + table(columns, found)
    forms = results.settings.get("peers", [])
    text += "\n### The forms that peers are given\n\n" + table([("peer", lambda one: one["name"]), ("form", lambda one: one["form"]), ("tight", lambda one: one["tight"])], forms)
    return text


def infeasible_text(results):
    rows = section_rows(results, "infeasible")
    if not rows:
        return ""
    cases = list(by_case(rows))
    who = list(dict.fromkeys(row["who"] for row in rows))
    at = {(row["case"], row["who"]): row for row in rows}

    def cell(case):
        def show(name):
            row = at.get((case, name))
            return "" if row is None else row["verdict"] + (f", {duration(row['median'])}" if row.get("median") else "")
        return show
    text = """
## Rows that no W can meet

*noticed*: the solver says that there is no answer. *gave up*: it stops without saying so. *wrong*: it calls an answer optimal. *failed*: it ends with an error. Only attsvm gives a proof, which `attsvm verify` checks. An empty cell means that the solver cannot express the problem.

"""
    return text + table([("solver", str)] + [(case, cell(case)) for case in cases], who)


def large_text(results):
    rows = section_rows(results, "large")
    if not rows:
        return ""
    columns = [("problem", lambda row: row["case"]), ("time", time_of), ("limit passes", shown("passes", number)), ("of them to 1e-6", shown("passes_to_1e_6", number)), ("gap", shown("gap", tiny)),
               ("rank", lambda row: "" if row.get("rank") is None else f"{row['rank']}{'' if row['certified'] else ' (not certified)'}"), ("pricing pass", shown("share", percent)), ("binds", shown("binds")),
               ("memory / tokens", shown("memory", lambda v: f"{v:.2f}")), ("verified", lambda row: "yes" if row.get("verified") else "no"), ("method", shown("method"))]
    return """
## Large problems against the machine

A *limit pass* is the least time in which one can look at every row once: token bytes / stream read speed + 2·n·d·dz / GEMM speed, measured in the same process before and after, on all threads. *Pricing pass* is the share of that
limit which one pass over all rows reaches, *binds* what the larger part of the limit is; tokens of less than 64 MB may stay in a cache, where memory is no limit. A *head* is a task whose coordinates have unequal sizes, as those of trained attention heads do.

""" + table(columns, rows)


def training_text(results, drawn):
    text = ""
    rows = section_rows(results, "training")
    if rows:
        columns = [("way", lambda row: f"**{row['who']}**" if row["who"] == "attsvm" else row["who"]), ("per step and run", time_of), ("spread", spread_text), ("steps per second", shown("steps_per_second", number)),
                   ("times ours", lambda row: "" if row["who"] == "attsvm" else ratio_of(row)), ("memory", lambda row: f"{row['memory']:.2f} times the tokens" if row.get("memory") else shown("memory_bytes", lambda v: f"{v / 2**20:.0f} MiB")(row)),
                   ("", shown("reason"))]
        text += """
## Training

A normalized gradient step. *published*: autograd, one instance at a time, the way the papers train. *by hand*: the gradient written out. *batched*: 1,000 instances at once, gradient by hand, as products of small matrices
(bmm), with the instances last, and that compiled (`torch.compile`). attsvm computes exact directions at any saturation; PyTorch's arithmetic is plain. Memory is the peak of the process; for large tasks, without what PyTorch takes before it has data.
"""
        text += picture(drawn, "training", "Seconds per step and run, one line per way")
        for case, found in by_case(rows).items():
            text += f"\n### {case}\n\n" + table(columns, found)
    rows = section_rows(results, "steps")
    if rows:
        columns = [("task", lambda row: row["case"]), ("", lambda row: row["who"]), ("per step and run", time_of), ("spread", spread_text), ("times ngd", shown("times_ngd", times)), ("of one read and products", shown("share", percent)),
                   ("of two reads", shown("share_of_two_reads", percent)), ("binds", shown("binds")), ("memory / tokens", shown("memory", lambda v: f"{v:.2f}"))]
        text += "\n## Training steps of attsvm\n\nShares are of the machine's limit, measured in turn: every token read once and both products with W, or every token read twice.\n\n" + table(columns, rows)
    return text


def saturation_text(results, drawn):
    rows = section_rows(results, "saturation")
    if not rows:
        return ""
    who = list(dict.fromkeys(row["who"] for row in rows))
    cases = by_case(rows)

    def cell(name):
        def show(case):
            row = next((row for row in cases[case] if row["who"] == name), None)
            return "" if row is None else row["status"] if row["error_direction"] is None else tiny(row["error_direction"])
        return show
    columns = [("W", str), ("gradient", lambda case: f"10^{cases[case][0]['log10_gradient']:.0f}")] + [(name, cell(name)) for name in who]
    return """
## Directions where the softmax saturates

‖G/‖G‖ − exact‖ of the gradient G at multiples of the max-margin W of (6,8,10), against numbers of hundreds of digits (mpmath). An error of 1.4 means a random direction.
""" + picture(drawn, "saturation", "Error of the direction against the size of W") + "\n" + table(columns, cases)


def jobs_text(results):
    rows = section_rows(results, "jobs")
    if not rows:
        return ""
    ours = {row["case"]: row for row in rows if row["who"].startswith("attsvm")}
    peers = {row["case"]: row for row in rows if not row["who"].startswith("attsvm")}
    columns = [("experiment", str), ("runs per setting", lambda case: f"{ours[case]['runs']} of {ours[case]['of']}" if "runs" in ours[case] else "all"), ("attsvm reproduce", lambda case: time_of(ours[case])),
               ("PyTorch and cvxpy", lambda case: "" if case not in peers else "" if peers[case]["status"] == "ok" and not peers[case].get("median") else time_of(peers[case])),
               ("times ours", lambda case: shown("ratio", times)(peers.get(case, {}))), ("the whole paper's way", lambda case: shown("extrapolated", duration)(peers.get(case, {})))]
    return """
## Whole jobs

The published experiments the way their authors run them, reconstructed from the description of each (docs/experiments.md), not their code: PyTorch's autograd on one thread (the best for tensors this small), one
instance at a time, cvxpy with ECOS and SCS; one run per setting, no figures. attsvm does the same counts on one thread, as a program from start to end, figures included, with every run in exact arithmetic too and every SVM verified; its small jobs are mostly gnuplot. The last column extrapolates to the papers' own counts; that of multi-token, which counts accepted runs only, is rough. *all* compares attsvm on every core with as many processes of the others.

""" + table(columns, ours)


def scaling_text(results, drawn):
    rows = section_rows(results, "scaling")
    if not rows:
        return ""
    fits = [row for row in rows if row["who"] == "fit"]
    threads = [row for row in rows if row.get("variable") == "threads"]
    text = "\n## How time grows\n\nOne size grows, the others stay at (400,32,64), one thread. Exponents by least squares on logarithms, ± their standard error, over the sizes that get the same method as the largest.\n" + picture(drawn, "scaling", "Seconds against size")
    text += "\n" + table([("", lambda row: row["case"]), ("method", shown("method")), ("exponent", lambda row: f"{row['exponent']:.2f}" + (f" ± {row['error']:.2f}" if row.get("error") is not None else ""))], fits)
    if threads:
        text += "\n" + table([("", lambda row: row["case"]), ("", lambda row: row["who"]), ("time", time_of), ("spread", spread_text)], threads)
    return text


def limits_text(results):
    text = ""
    rows = section_rows(results, "limits")
    if rows:
        text += "\n## The machine's limits\n\n" + table([("", lambda row: row["case"]), ("threads", lambda row: row["threads"]), ("speed", lambda row: f"{row['speed'] / 1e9:.1f} G{row['unit']}")], rows)
    rows = section_rows(results, "kernels")
    if rows:
        text += "\n## Vector loops\n\nShare: of the plainest loop that sums the same numbers.\n\n" + table(
            [("", lambda row: row["case"]), ("loop", lambda row: row["who"]), ("time", time_of), ("GB/s", lambda row: f"{row['bytes'] / row['median'] / 1e9:.1f}"), ("share", shown("share", percent)), ("binds", shown("binds"))], rows)
    rows = section_rows(results, "files")
    if rows:
        text += "\n## Loading a task\n\nThe file is in the page cache, and every checksum and number is checked. Share: of read() into a buffer, for copies into fresh memory.\n\n" + table(
            [("", lambda row: row["case"]), ("way", lambda row: row["who"]), ("time", time_of), ("spread", spread_text), ("share", shown("share", percent)), ("memory / file", shown("memory", lambda v: f"{v:.2f}"))], rows)
    return text


def device_text(results):
    """From results of their own: those of a machine with a GPU."""
    if results is None:
        return ""
    m, rows = results.machine, section_rows(results, "device")
    limits = {row["who"]: row["speed"] for row in rows if row["case"] == "limits"}
    name = next(row["device"] for row in rows if row["case"] == "limits")
    solved = [row for row in rows if "problems_per_second" in row]
    trained = [row for row in rows if row["case"] != "limits" and row not in solved]
    best = {case: max((row["steps_per_second"] for row in found if row["who"].startswith("PyTorch") and row.get("steps_per_second")), default=None) for case, found in by_case(trained).items()}
    return (f"\n## Batches on a GPU\n\n{name} ({limits['multiply'] / 1e12:.1f} TFLOP/s of FP64 multiply-adds in registers, {limits['read'] / 1e12:.1f} TB/s read, measured in the same run), {m['cores']} cores of {m['processor']}; {m['date'][:10]}, "
            f"commit {m['commit']}. Training steps of all instances per second: of `train_many` from tasks in the host's memory to results in it, of the kernels alone (two long runs, their difference), of PyTorch in plain double arithmetic on the same card, its data ready, and of `train_many` on the CPU. "
            + f"`make bench-device` repeats it.{' ' + results.settings['note'] if results.settings.get('note') else ''}\n\n"
            + table([("runs", lambda row: row["case"]), ("way", lambda row: row["who"]), ("instances", shown("instances", number)), ("steps per second", lambda row: f"{row['steps_per_second']:.2e}" if row.get("steps_per_second") else row["status"]),
                     ("over the best PyTorch", lambda row: times(row["steps_per_second"] / best[row["case"]]) if best[row["case"]] and row["who"].startswith("attsvm") else "")], trained)
            + ("" if not solved else "\nFrobenius problems per second: of the kernel alone, with the problems in the card's memory; of `solve_many` from problems in the host's memory to certified answers in it; and of the same on the CPU.\n\n"
            + table([("problems", lambda row: row["case"]), ("way", lambda row: row["who"]), ("how many", shown("problems", number)), ("per second", lambda row: f"{row['problems_per_second']:.2e}"),
                     ("worst gap", lambda row: f"{row['worst_gap']:.0e}"), ("left to the CPU", lambda row: row.get("handed_over", ""))], solved)))


def many_text(results):
    rows = section_rows(results, "many")
    if not rows:
        return ""
    return "\n## Small problems\n\nOver many different problems, one by one on one thread and at once on all; every answer verified. All data are in the cache.\n\n" + table(
        [("problems", lambda row: f"{row['problems']:,} {row['case']}"), ("way", lambda row: row["who"]), ("threads", lambda row: row["threads"]), ("per problem", time_of), ("spread", spread_text), ("worst gap", shown("gap", tiny)),
         ("infeasible", shown("infeasible")), ("wrong", shown("wrong")), ("ranks not certified", lambda row: row["uncertain_ranks"] if row["case"].startswith("nuc") else ""), ("binds", shown("binds"))], rows)


def wrapped(text, width=120):
    """The text with its paragraphs filled; headings, tables and pictures stay as they are."""
    kept = ("#", "|", "!", "-", "<!--")
    return "\n\n".join(part if part.lstrip().startswith(kept) else textwrap.fill(part, width, break_long_words=False, break_on_hyphens=False)
                       for part in text.strip().split("\n\n")) + "\n"


def whole(results, drawn, device=None):
    head = f"""# Benchmarks

`bench/document` wrote this page from [benchmarks.json](benchmarks.json), which `bench/run --peers` measured; nothing here is typed in by hand. To repeat it, run `make bench-peers` (it installs gigabytes of peers into build/peers and takes an hour or two), then `bench/document build/results/peers.json`. To repeat a part: `bench/run --peers --only solvers --case "(6,8,10)" --into build/results/peers.json`. `bench/compare A.json B.json` says what a change made slower.

{machine_text(results)}
## In short

{short(results)}"""
    return wrapped(head + aims_text(results) + solvers_text(results, drawn) + infeasible_text(results) + large_text(results) + many_text(results) + training_text(results, drawn) + saturation_text(
        results, drawn) + jobs_text(results) + device_text(device) + scaling_text(results, drawn) + limits_text(results))


def best_peer(results, case):
    """The fastest peer whose answer counts, and its row."""
    found = [row for row in section_rows(results, "solvers") if row["case"] == case and row["who"] != "attsvm" and row.get("median") and row.get("gap") is not None and row["gap"] <= COMPARABLE]
    return min(found, key=lambda row: row["median"], default=None)


def short(results):
    """Ours beside the fastest other answer, whichever way it was got."""
    lines = []
    for case, words in (("Att-SVM fro (6,8,10)", "Frobenius SVM (6,8,10)"), ("Att-SVM fro (100,32,64)", "Frobenius SVM (100,32,64)"), ("Att-SVM nuc (6,8,10)", "nuclear SVM (6,8,10)"), ("Att-SVM nuc (30,16,32)", "nuclear SVM (30,16,32)"),
                        ("Att-SVM nuc (100,32,64)", "nuclear SVM (100,32,64)"),
                        ("p-SVM fro (15,5,20)", "prompt SVM (15,5,20)"), ("Gen-SVM fro (15,5,20)", "SVM of token sets (15,5,20)")):
        mine = next((row for row in section_rows(results, "solvers") if row["case"] == case and row["who"] == "attsvm"), None)
        if mine is None:
            continue
        best = best_peer(results, case)
        default = least_ratio(case, "cvxpy + SCS" if " nuc " in case else "cvxpy + OSQP", "default")(results)
        lines.append((words, f"{duration(mine['median'])}, gap {tiny(mine['gap'])}", f"{times(best['times_ours'])} ({best['who']})" if best else "none within 60 s", ratio_text(default)))
    cores = results.machine["cores"]
    for param in ("W", "KQ"):
        per_step = of("training", f"(6,8,10) {param}, 1000 at once, {cores} threads", "attsvm", "median")(results)
        if per_step is not None:
            lines.append((f"training {param}, 1,000 runs of (6,8,10), per step and run", duration(per_step), times(batched_ratio(param, "PyTorch, batched", cores)(results)) + " (PyTorch, batched)",
                          times(batched_ratio(param, "PyTorch, published", cores)(results)) + " (the published way)"))
    whole_paper = next((row for row in section_rows(results, "jobs") if row["case"] == "all, at full counts" and row["who"].startswith("PyTorch")), None)
    if whole_paper is not None:
        least = "at least " if "at least" in whole_paper["who"] else ""
        lines.append(("`attsvm reproduce all`", duration(of("jobs", "all, at full counts", "attsvm", "median")(results)), "", least + times(whole_paper["ratio"]) + " (the published way, reconstructed and extrapolated)"))
    passes = [f"{number(of('large', f'{norm} (2000,128,384) separable', 'attsvm', 'passes')(results))} ({word})" for norm, word in (("fro", "Frobenius"), ("nuc", "nuclear"))
              if of("large", f"{norm} (2000,128,384) separable", "attsvm", "passes")(results)]
    text = "| | attsvm | times ours: best peer with a gap of at most 1e-6 | times ours: cvxpy with OSQP (nuclear: SCS) at defaults, or as said |\n|---|---|---|---|\n"
    text += "".join("| " + " | ".join(line) + " |\n" for line in lines)
    m = results.machine
    text += f"\nMeasured on {m['processor']}, {m['cores']} cores, {m['date'][:10]}; every answer, the peers' too, went through `attsvm verify`."
    if provisional(results):
        text += " Provisional: other work shared the machine for some of it."
    different = of("many", "fro (6,8,10)", "one by one", "median")(results)
    if different:
        text += f" The table repeats the same problem; over many different ones, a Frobenius (6,8,10) takes attsvm {duration(different)}."
    if passes:
        text += f" (2000,128,384), 254,000 rows, takes as long as {' or '.join(passes)} passes over all rows at the read and multiply speeds measured here."
    judged = [found for aim in all_aims(m["cores"]) if (found := aim.judged(results))]
    if judged:
        text += f" {sum(found[2] for found in judged)} of {len(judged)} aims are met."
    slower = sum(bool(row.get("times_ours")) and row["times_ours"] < 1 for row in section_rows(results, "solvers"))
    text += f" Other solvers were faster than attsvm in {slower} of their rows." if slower else ""
    return text + " Sizes are (queries, tokens each, dimension).\n"


def readme(results):
    """Three figures: a Frobenius problem, a nuclear one, and training."""
    lines = []
    for case, words in (("Att-SVM fro (100,32,64)", "Frobenius SVM of 3,100 rows (100 queries, 32 tokens, d = 64)"), ("Att-SVM nuc (30,16,32)", "nuclear SVM of 450 rows (30 queries, 16 tokens, d = 32)")):
        mine = next((row for row in section_rows(results, "solvers") if row["case"] == case and row["who"] == "attsvm"), None)
        best = best_peer(results, case)
        if mine and best:
            lines.append(f"- {words}: {duration(mine['median'])}; the fastest of the other solvers that reach a gap of 1e-6, {best['who'].split(',')[0]}, takes {number(best['times_ours'])} times as long")
    cores = results.machine["cores"]
    per_step = of("training", f"(6,8,10) W, 1000 at once, {cores} threads", "attsvm", "median")(results)
    if per_step is not None:
        lines.append(f"- training W, 1,000 runs at once (6 queries, 8 tokens, d = 10): {duration(per_step)} per step and run; batched PyTorch takes {number(batched_ratio('W', 'PyTorch, batched', cores)(results))} times as long")
    rough = " These figures are provisional: other work shared the machine." if provisional(results) else ""
    last = f"{results.machine['processor']}, {cores} cores, {results.machine['date'][:10]}.{rough} [docs/benchmarks.md](docs/benchmarks.md) has every measurement, including those where other solvers are faster."
    return "\n".join(textwrap.fill(line, 120, subsequent_indent="  ", break_on_hyphens=False) for line in lines) + "\n\n" + textwrap.fill(last, 120, break_on_hyphens=False) + "\n"
