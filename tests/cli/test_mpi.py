"""The program under mpirun: what several ranks write has the bytes of one process."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

PROGRAM = pathlib.Path(os.environ["ATTSVM_PROGRAM"])
PLUGIN = PROGRAM.parent / "attsvm_mpi.so"
LAUNCH = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
# Open MPI as containers allow it: without ssh, without other hosts, without reading another process's memory.
PLACE = {**os.environ, "OMPI_MCA_plm": "isolated", "OMPI_MCA_btl": "self,vader", "OMPI_MCA_pml": "ob1",
         "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
SWEEP = {"name": "width", "task": {"kind": "random"}, "sizes": {"n": 3, "T": 4, "d": [3, 6]},
         "train": {"param": ["W", "KQ"], "steps": 200}, "measure": ["feasible", "rank_nuc", "correlation_fro", "global"],
         "runs": 30, "seed": 5}

pytestmark = pytest.mark.skipif(shutil.which("mpirun") is None or not PLUGIN.exists(), reason="there is no MPI")


def ranks(count, *args, program=PROGRAM, **options):
    return subprocess.run([*LAUNCH, "-n", str(count), program, *map(str, args)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, env=PLACE, timeout=600, **options)


def lines_of_ours(done):
    return [line for line in done.stderr.splitlines() if line.startswith("attsvm: ")]


def files(folder):
    """All but the store, whose rows may have come in another order."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.startswith("runs.sqlite3")}


def answer(text):
    """A JSON answer without what may differ."""
    found = json.loads(text)
    for entry in (found, *found.get("claims", [])):
        for name in ("seconds", "threads"):
            entry.pop(name, None)
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The sweep in one process: its answer and its files."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "sweep.json").write_text(json.dumps(SWEEP))
    done = subprocess.run([PROGRAM, "sweep", "sweep.json", "--out", "out", "--json", "--export", "csv"], cwd=folder,
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return answer(done.stdout), files(folder / "out")


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_sweep_has_the_bytes_of_one_process(count, alone, tmp_path):
    (tmp_path / "sweep.json").write_text(json.dumps(SWEEP))
    done = ranks(count, "sweep", "sweep.json", "--out", "out", "--json", "--export", "csv", "--threads", 1 + count % 2,
                 cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (answer(done.stdout), files(tmp_path / "out")) == alone


def test_experiments_have_the_bytes_of_one_process(attsvm, tmp_path):
    command = ("reproduce", "single-input", "losses", "svm-rank", "--runs", 2, "--out", "out")
    for name in ("one", "three"):
        (tmp_path / name).mkdir()
    assert attsvm(*command, cwd=tmp_path / "one").code == 0
    done = ranks(3, *command, "--threads", 1, cwd=tmp_path / "three")
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "three/out") == files(tmp_path / "one/out")
    assert done.stdout.count("an overview page") == 1


def test_claims_have_the_bytes_of_one_process(attsvm, tmp_path):
    command = ("claims", "rank", "p-W-lemma", "global", "--tasks", 16, "--json")
    for name in ("one", "three"):
        (tmp_path / name).mkdir()
    one = attsvm(*command, cwd=tmp_path / "one")
    done = ranks(3, *command, "--threads", 1, cwd=tmp_path / "three")
    assert (one.code, done.returncode) == (0, 0), done.stderr
    assert answer(done.stdout) == answer(one.out)
    written = files(tmp_path / "one")
    assert list(written) == ["claims/global.npz"]  # a counter-example travels to rank 0
    assert files(tmp_path / "three") == written


def test_claims_go_on_with_other_ranks(attsvm, tmp_path):
    command = ("claims", "global", "direction", "rank", "--tasks", 300, "--seed", 1, "--json")
    for name in ("one", "many"):
        (tmp_path / name).mkdir()
    one = attsvm(*command, cwd=tmp_path / "one")
    for count, limit in ((3, 0.4), (2, 0.3)):
        part = ranks(count, *command, "--threads", 1, "--time-limit", limit, cwd=tmp_path / "many")
        assert part.returncode in (0, 4), part.stderr
    done = attsvm(*command, cwd=tmp_path / "many")
    assert answer(done.out) == answer(one.out)
    assert files(tmp_path / "many") == files(tmp_path / "one")


def test_other_verbs_run_once_and_all_ranks_end_with_their_code(attsvm, tmp_path):
    assert attsvm("generate", "random", "--seed", 1, "-o", tmp_path / "task.npz").code == 0
    assert attsvm("solve", tmp_path / "task.npz", "-o", tmp_path / "one.npz").code == 0
    done = ranks(2, "solve", tmp_path / "task.npz", "-o", tmp_path / "two.npz", "--json")
    assert done.returncode == 0, done.stderr
    assert answer(done.stdout)["status"] == "optimal"  # one object, so one rank printed it
    assert (tmp_path / "two.npz").read_bytes() == (tmp_path / "one.npz").read_bytes()
    assert attsvm("verify", tmp_path / "task.npz", tmp_path / "two.npz").code == 0
    # Two equal tokens, of which one is to be selected.
    np.savez(tmp_path / "hard.npz", tokens=np.ones((1, 2, 2)), select=np.array([0]))
    done = ranks(2, "solve", tmp_path / "hard.npz", "-o", tmp_path / "hard.out.npz", "--quiet")
    assert done.returncode == 3
    assert attsvm("verify", tmp_path / "hard.npz", tmp_path / "hard.out.npz").code == 0


def test_a_signal_to_all_ranks_lets_rank_0_write(attsvm, tmp_path):
    """Slurm signals every rank."""
    assert attsvm("generate", "random", "--seed", 1, "-o", tmp_path / "task.npz").code == 0
    job = subprocess.Popen([*LAUNCH, "-n", "2", PROGRAM, "train", "task.npz", "-o", "run.npz", "--steps", "100000000000",
                            "--checkpoint", "0.01", "--json"], cwd=tmp_path, env=PLACE, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    while job.poll() is None and not list(tmp_path.glob("*run.npz*")):
        time.sleep(0.01)
    for rank in reversed(children(job)):
        os.kill(rank, signal.SIGINT)
    out, errors = job.communicate(timeout=600)
    assert job.returncode == 130 and "exited on signal" not in errors, errors
    assert json.loads(out)["stopped"] == "interrupted"
    assert (tmp_path / "run.npz").exists()


@pytest.mark.parametrize("command", [("sweep", "absent.json"), ("claims", "absent"), ("solve", "absent.npz", "-o", "x.npz"),
                                     ("sweep", "--runs", "x")])
def test_bad_input_is_one_line(command, tmp_path):
    done = ranks(3, *command, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert len(lines_of_ours(done)) == 1, done.stderr


def test_a_file_that_only_one_rank_has_is_named_with_its_rank(tmp_path):
    for name in ("zero", "one"):
        (tmp_path / name).mkdir()
    (tmp_path / "zero/sweep.json").write_text(json.dumps(SWEEP))
    there = ["--wdir", tmp_path / "zero", "-n", "1", PROGRAM, "sweep", "sweep.json"]
    away = ["--wdir", tmp_path / "one", "-n", "1", PROGRAM, "sweep", "sweep.json"]
    done = subprocess.run([*LAUNCH, *there, ":", *away], capture_output=True, text=True, env=PLACE, timeout=600)
    assert done.returncode == 2
    assert lines_of_ours(done) == ["attsvm: rank 1: sweep.json: cannot open: No such file or directory"], done.stderr


def test_a_rank_with_another_version_of_the_file_is_named(tmp_path):
    """Its rows would be stored under the settings of rank 0."""
    for name, change in (("zero", {}), ("one", {"sizes": {"n": 3, "T": 4, "d": [3, 7]}})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sweep.json").write_text(json.dumps({**SWEEP, **change}))
    here, there = (["--wdir", tmp_path / name, "-n", "1", PROGRAM, "sweep", "sweep.json"] for name in ("zero", "one"))
    done = subprocess.run([*LAUNCH, *here, ":", *there], capture_output=True, text=True, env=PLACE, timeout=600)
    assert done.returncode == 2
    assert lines_of_ours(done) == [
        "attsvm: rank 1: the settings or the seed here are not those of rank 0; are the files the same?"], done.stderr


def test_ranks_with_different_commands_refuse(attsvm, tmp_path):
    """Only rank 0 solves, so the other task would be lost."""
    for rank in (0, 1):
        assert attsvm("generate", "random", "--seed", rank, "-o", tmp_path / f"task{rank}.npz").code == 0
    words = f'exec {PROGRAM} solve task$OMPI_COMM_WORLD_RANK.npz -o solution$OMPI_COMM_WORLD_RANK.npz'
    done = ranks(2, "-c", words, program="sh", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert lines_of_ours(done) == ["attsvm: rank 1 was given another command than rank 0; give all the same"], done.stderr
    assert not list(tmp_path.glob("solution*"))


def test_a_claim_that_was_stopped_is_told_by_the_exit_code(tmp_path):
    """Also if a later claim was done."""
    done = ranks(2, "claims", "over-parametrization", "capacity-always", "--tasks", 60, "--time-limit", 1, "--threads", 1, "--json",
                 cwd=tmp_path)
    claims = json.loads(done.stdout)["claims"]
    stopped = len(claims) < 2 or any(claim["stopped"] for claim in claims)
    assert done.returncode == (4 if stopped else 0), done.stdout + done.stderr


def test_ranks_of_different_builds_refuse(tmp_path):
    other = tmp_path / "attsvm"
    shutil.copy(PROGRAM, other)
    shutil.copy(PLUGIN, tmp_path)
    with open(other, "ab") as file:
        file.write(bytes(4096))
    done = subprocess.run([*LAUNCH, "-n", "1", PROGRAM, "info", ":", "-n", "1", other, "info"], capture_output=True,
                          text=True, env=PLACE, timeout=600)
    assert done.returncode == 2
    assert lines_of_ours(done) == ["attsvm: rank 1 runs another build of attsvm; install the same on every machine"]


def test_without_the_plugin(tmp_path):
    program = tmp_path / "attsvm"
    shutil.copy(PROGRAM, program)
    done = ranks(2, "info", program=program)
    assert done.returncode == 2
    assert len(lines_of_ours(done)) == 1 and "built without MPI" in done.stderr, done.stderr
    done = ranks(1, "info", "--json", program=program)  # one rank needs no MPI
    assert done.returncode == 0 and json.loads(done.stdout)["command"] == "info"


def start(count, folder):
    return subprocess.Popen([*LAUNCH, "-n", str(count), PROGRAM, "sweep", "sweep.json", "--out", "out", "--json", "--export",
                             "csv", "--threads", "1"], cwd=folder, env=PLACE, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def once_rows_are_stored(job, folder, act):
    """Calls act when the store has grown, unless the job ends before."""
    size = sum(path.stat().st_size for path in folder.glob("out/runs.sqlite3*"))
    while job.poll() is None:
        if sum(path.stat().st_size for path in folder.glob("out/runs.sqlite3*")) > max(size, 40_000):
            act()
            break
        time.sleep(0.005)
    return job.communicate(timeout=600)


def children(process):
    return [int(pid) for pid in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def test_killed_ranks_lose_nothing_that_is_stored(alone, tmp_path):
    (tmp_path / "sweep.json").write_text(json.dumps(SWEEP))
    for count, victim in ((3, 1), (2, 0), (4, 3)):
        job = start(count, tmp_path)
        _, errors = once_rows_are_stored(job, tmp_path, lambda: kill(children(job)[victim]))
        assert job.returncode == 0 or "exited on signal 9" in errors, errors  # mpirun's own line
    done = ranks(2, "sweep", "sweep.json", "--out", "out", "--json", "--export", "csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (answer(done.stdout), files(tmp_path / "out")) == alone


def test_ctrl_c_ends_all_ranks(alone, tmp_path):
    (tmp_path / "sweep.json").write_text(json.dumps(SWEEP))
    job = start(3, tmp_path)
    once_rows_are_stored(job, tmp_path, lambda: job.send_signal(signal.SIGINT))
    again = subprocess.run([PROGRAM, "sweep", "sweep.json", "--out", "out", "--json", "--export", "csv"], cwd=tmp_path,
                           capture_output=True, text=True, timeout=600)
    assert again.returncode == 0, again.stderr  # nobody holds the store any more
    assert (answer(again.stdout), files(tmp_path / "out")) == alone
