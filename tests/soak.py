"""Looks for what breaks attsvm, case after case: tests/soak.py --seconds 3600 (make soak).

Case k of a class is the same wherever it is run. What is done is kept in the folder, and the next call goes on from
there. A case that fails leaves its files and its words in failures/CLASS-K; tests/soak.py --only CLASS K runs it again.
The exit code is 1 as long as a case that is kept has failed, also one of an earlier call.
"""

import argparse
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

PROGRAM = os.environ.get("ATTSVM_PROGRAM", "build/dev/attsvm")
FAILING_MALLOC = os.environ.get("ATTSVM_FAILING_MALLOC", "build/dev/tests/libfailing_malloc.so")
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
MPI_PLACE = {**os.environ, "OMPI_MCA_plm": "isolated", "OMPI_MCA_btl": "self,vader", "OMPI_MCA_pml": "ob1",
             "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
NORMS = ["fro", "nuc", "spec", "max", "l1", "lp:3", "schatten:4"]


class Broken(Exception):
    """What must not happen."""


def attsvm(*words, ends=(0,), **options):
    """Runs the program to its end: one of these exit codes, one line for bad input, and no hang."""
    try:
        done = subprocess.run([PROGRAM, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=900, **options)
    except subprocess.TimeoutExpired as error:
        raise Broken(f"hangs: {words}") from error
    lines = [line for line in done.stderr.splitlines() if not line.endswith(" requests")]
    if done.returncode not in ends or (done.returncode == 2 and len(lines) != 1):
        raise Broken(f"{words}: ends with {done.returncode}: {done.stdout[-500:]} {done.stderr[-2000:]}")
    return done


def draw(pick, folder, kinds=("random", "random", "separable", "planted", "infeasible")):
    """A small random task; one of kind "random" has a head, so that it can be trained."""
    kind, task = pick.choice(kinds), folder / "task.npz"
    sizes = ["--n", pick.randint(2, 12), "--T", pick.randint(2, 8), "--d", pick.randint(2, 10)]
    done = attsvm("generate", kind, *sizes, "--seed", pick.randrange(10**6), "-o", task, ends=(0, 2))
    return task if done.returncode == 0 else draw(pick, folder, kinds)


def work(pick, task, out):
    """A verb with its options, which writes `out`."""
    verbs = [["solve", task, "--norm", pick.choice(NORMS), "-o", out], ["report", task, "-o", out],
             ["solve", task, "--soft", pick.choice([0.1, 1, 100]), "-o", out]]
    with np.load(task) as file:
        if "head" in file.files:
            verbs += [["train", task, "--steps", 100, "--param", pick.choice(["W", "KQ"]), "-o", out],
                      ["path", task, "--radius", "1,5", "-o", out]]
    return pick.choice(verbs)


def proven(task, solution):
    attsvm("verify", task, solution)


def answers(pick, folder):
    """A solve whose answer verify proves."""
    task = draw(pick, folder)
    attsvm("solve", task, "--norm", pick.choice(NORMS), "-o", folder / "s.npz", ends=(0, 3, 4))
    proven(task, folder / "s.npz")


def threads(pick, folder):
    """The same bytes for two numbers of threads."""
    task, out = draw(pick, folder), folder / "out"
    words, ended = [*work(pick, task, out), "--quiet", "--force", "--threads"], set()
    for count in (1, pick.choice([2, 3, 7, 64])):
        code = attsvm(*words, count, ends=(0, 3, 4)).returncode
        ended.add((code, out.read_bytes()))
    if len(ended) != 1:
        raise Broken(f"{words}: threads change the answer")


def allocations(pick, folder):
    """A request for memory that fails."""
    task, out = draw(pick, folder), folder / "out"
    at = int(10 ** pick.uniform(0, 4.5))
    env = {**os.environ, "LD_PRELOAD": str(FAILING_MALLOC), "ATTSVM_FAIL_AT": str(at),
           "ATTSVM_FAIL_COUNT": str(pick.choice([1, 2, 10**9]))}
    done = attsvm(*work(pick, task, out), "--quiet", "--threads", pick.choice([1, 3]), env=env, ends=(0, 2, 3, 4))
    if done.returncode == 2 and out.exists():
        raise Broken("a file is left behind")


def memory(pick, folder):
    """Little address space."""
    task, out, room = draw(pick, folder), folder / "out", pick.randint(60, 400) << 20
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room))
    done = attsvm(*work(pick, task, out), "--quiet", "--threads", 2, preexec_fn=limit, ends=(0, 2, 3, 4, 127))
    if done.returncode in (2, 127) and out.exists():
        raise Broken("a file is left behind")


def signals(pick, folder):
    """Ctrl-C and its kin at any moment: soon an end, and files that are whole."""
    task, out = folder / "task.npz", folder / "out"
    attsvm("generate", pick.choice(["random", "separable"]), "--n", 100, "--T", 20, "--d", 30,
           "--seed", pick.randrange(99), "-o", task)
    words = [*map(str, work(pick, task, out)), "--quiet"]
    program = subprocess.Popen([PROGRAM, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(10 ** pick.uniform(-3, 0))
    number = pick.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    program.send_signal(number)
    try:
        code = program.wait(timeout=300)
    except subprocess.TimeoutExpired as error:
        program.kill()
        raise Broken(f"{words} goes on") from error
    if code not in (0, 3, 4, 130, -number):
        raise Broken(f"{words}: ends with {code}")
    if words[0] == "solve" and code in (0, 3) and out.exists():
        proven(task, out)


def kills(pick, folder):
    """A run that is killed and resumed ends with the bytes of one that was not."""
    task, optimizer = draw(pick, folder, ["random"]), pick.choice(["ngd", "gd", "adam"])
    words = ["train", str(task), "--steps", "30000", "--quiet", "--optimizer", optimizer]
    done = attsvm(*words, "-o", folder / "whole", ends=(0, 4))
    program = subprocess.Popen([PROGRAM, *words, "-o", folder / "killed"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    time.sleep(10 ** pick.uniform(-2.5, 0))
    program.kill()
    program.wait()
    if not (folder / "killed").exists():
        attsvm(*words, "--resume", "-o", folder / "killed", ends=(done.returncode,))
    if (folder / "killed").read_bytes() != (folder / "whole").read_bytes():
        raise Broken("a resumed run has other bytes")


def ranks(pick, folder):
    """A job of several ranks of which one is killed ends, and what is done again has the bytes of one process."""
    task, shards = folder / "task.npz", folder / "shards"
    attsvm("generate", "random", "--n", 4200, "--T", 3, "--d", 5, "--seed", pick.randrange(99), "-o", task)
    attsvm("split", task, "--parts", pick.choice([2, 4, 7]), "-o", shards)
    words = ["train", "--steps", "400", "--checkpoint", "0.01", "--quiet", "--optimizer", pick.choice(["ngd", "adam"])]
    attsvm(*words, task, "-o", folder / "whole")
    words += ["--threads", "1", "--resume", str(shards), "-o", folder / "killed"]
    for _ in range(pick.choice([1, 2, 3])):
        launch = [*MPIRUN, "-n", str(pick.choice([2, 3, 4])), PROGRAM]
        job = subprocess.Popen([*launch, *words], env=MPI_PLACE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(10 ** pick.uniform(-1.5, 0.5))
        children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        if children:
            os.kill(int(pick.choice(children)), signal.SIGKILL)
        try:
            job.wait(timeout=300)
        except subprocess.TimeoutExpired as error:
            job.kill()
            raise Broken("a job that lost a rank goes on") from error
        if (folder / "killed").exists():
            break
    else:
        attsvm(*words)
    if (folder / "killed").read_bytes() != (folder / "whole").read_bytes():
        raise Broken("a run of ranks that was killed and resumed has other bytes")


def hostile(pick, folder):
    """Files with bytes changed, cut off, doubled or swapped: an answer or one line."""
    task, solution = draw(pick, folder), folder / "solution.npz"
    attsvm("solve", task, "-o", solution, ends=(0, 3, 4))
    path = pick.choice([task, solution])
    data = bytearray(path.read_bytes())
    for _ in range(pick.choice([1, 1, 2, 8, 64])):
        at, kind = pick.randrange(max(1, len(data))), pick.randrange(5)
        if kind == 0 and data:
            data[at] ^= 1 << pick.randrange(8)
        elif kind == 1:
            data[at:at + pick.randrange(16)] = pick.randbytes(pick.randrange(16))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            data[at:at] = data[at:at + pick.randrange(200)]
        elif data:
            data[at] = pick.choice([0, 255, 127, 128])
    path.write_bytes(data)
    little = lambda: resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))
    attsvm("info", path, "--threads", 1, ends=(0, 2), preexec_fn=little)
    attsvm("verify", task, solution, "--threads", 1, ends=(0, 2, 5), preexec_fn=little)


def forgeries(pick, folder):
    """A valid solution of which one array is changed, with sums that are right: proven or refused, never believed."""
    task, solution = draw(pick, folder), folder / "solution.npz"
    if attsvm("solve", task, "--norm", pick.choice(NORMS), "-o", solution, ends=(0, 3, 4)).returncode != 0:
        return
    with np.load(solution) as file:
        arrays = dict(file)
    true = float(arrays["objective"])
    for _ in range(pick.choice([1, 1, 2])):
        name = pick.choice(["W", "dual", "objective", "dual_objective", "rhs", "slack", "row_keep", "row_drop",
                            "row_query"])
        numbers = np.array(arrays[name]).reshape(-1)
        if numbers.size == 0:
            continue
        k, factor = pick.randrange(numbers.size), pick.choice([-1, 0, 2, 1 + 1e-6, 1 - 1e-6, 1e12])
        which = slice(None) if pick.random() < 0.5 else slice(k, k + 1)
        changed = numbers.astype(float)
        changed[which] *= factor
        arrays[name] = changed.astype(numbers.dtype).reshape(np.shape(arrays[name]))
    np.savez(folder / "forged.npz", **arrays)
    done = attsvm("verify", task, folder / "forged.npz", "--json", ends=(0, 2, 5))
    if done.returncode == 0:
        claimed = json.loads(done.stdout)
        if abs(claimed["objective"] - true) > 1e-7 * true:
            raise Broken(f"verify accepts {claimed['objective']} for {true}")


CLASSES = {one.__name__: one for one in (answers, threads, allocations, memory, signals, kills, hostile, forgeries, ranks)}


def run_case(name, k, folder):
    """None, or why the case failed; its files are then kept."""
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch)
        try:
            CLASSES[name](random.Random(f"{name} {k}"), path)
        except Broken as error:
            kept = folder / "failures" / f"{name}-{k}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(path, kept)
            (kept / "words.txt").write_text(f"{error}\n")
            return str(error)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600, help="when to stop (default: an hour)")
    parser.add_argument("--cases", type=int, help="instead, how many cases of each class")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/soak"))
    parser.add_argument("--skip", action="append", metavar="CLASS", choices=list(CLASSES),
                        help="leave a class out")
    parser.add_argument("--only", nargs=2, metavar=("CLASS", "K"), help="run one case again")
    options = parser.parse_args()
    names = [name for name in CLASSES if name not in (options.skip or [])]
    if "allocations" in names and not os.access(FAILING_MALLOC, os.R_OK):  # the loader would only warn
        parser.error(f"{FAILING_MALLOC} is missing; build it, or name it in ATTSVM_FAILING_MALLOC")
    plugin = pathlib.Path(PROGRAM).parent / "attsvm_mpi.so"
    if "ranks" in names and (shutil.which("mpirun") is None or not plugin.exists()):
        parser.error("there is no MPI; leave its class out: --skip ranks")
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.only:
        sys.exit(run_case(options.only[0], int(options.only[1]), options.folder))
    file = options.folder / "state.json"
    state = json.loads(file.read_text()) if file.exists() else {}
    end, rounds = time.monotonic() + options.seconds, 0
    while time.monotonic() < end if options.cases is None else rounds < options.cases:
        rounds += 1
        for name in names:
            counts = state.setdefault(name, {"tried": 0, "failed": []})
            why = run_case(name, counts["tried"], options.folder)
            if why:
                counts["failed"].append(counts["tried"])
                print(f"{name} {counts['tried']}: {why}", file=sys.stderr, flush=True)
            counts["tried"] += 1
        whole = file.with_suffix(".new")
        whole.write_text(json.dumps(state))
        whole.replace(file)
    for name, counts in state.items():
        print(f"{name:<12} {counts['tried']:>6} tried, {counts['tried'] - len(counts['failed'])} survived")
    sys.exit(1 if any(counts["failed"] for counts in state.values()) else 0)


if __name__ == "__main__":
    main()
