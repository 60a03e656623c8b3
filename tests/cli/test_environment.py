"""What surrounds the program does not change its answers: variables, locales, folders, users, threads."""

import os
import subprocess

import numpy as np
import pytest

PLAIN = {"PATH": os.environ["PATH"]}
SURROUNDINGS = {
    "nothing": {},
    "openblas_threads": {"OPENBLAS_NUM_THREADS": "7", "GOTO_NUM_THREADS": "5", "OMP_NUM_THREADS": "3"},
    "openblas_one_thread": {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    "openblas_memory": {"OPENBLAS_MAIN_FREE": "1", "OPENBLAS_BLOCK_FACTOR": "1", "OPENBLAS_THREAD_TIMEOUT": "4"},
    "garbage": {"OPENBLAS_NUM_THREADS": "-3", "OMP_NUM_THREADS": "many", "HOME": "/no/such/home",
                "TMPDIR": "/no/such/tmp"},
    "locale": {"LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8", "LANGUAGE": "de"},
    "c_locale": {"LC_ALL": "C"},
}
AVX512 = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}
KERNELS = {  # what OpenBLAS chooses from, and the flags of processors that can run it
    "Prescott": {"pni"}, "Nehalem": {"ssse3", "sse4_1", "sse4_2"}, "Sandybridge": {"avx"}, "Haswell": {"avx2", "fma"},
    "Zen": {"avx2", "fma"}, "SkylakeX": {"avx2", "fma", *AVX512}}


def runnable(cpuinfo):
    """The kernels that a processor so described can run."""
    flags = set(next((line for line in cpuinfo.splitlines() if line.startswith("flags")), "").split())
    return [kernel for kernel, needed in KERNELS.items() if needed <= flags]


@pytest.fixture
def task(draw):
    return draw("random", "--n", 40, "--T", 12, "--d", 32)  # large enough for OpenBLAS


def files_of(attsvm, task, folder, threads=2, **options):
    """The bytes of a solution and a run, and what verify says in words."""
    folder.mkdir()
    for verb, more in (("solve", ["--norm", "nuc"]), ("train", ["--steps", 40])):
        done = attsvm(verb, task, "-o", folder / verb, "--quiet", "--threads", threads, *more, **options)
        assert done.code == 0 and done.err == "", done
    verdict = attsvm("verify", task, folder / "solve", **options)
    assert verdict.code == 0, verdict
    return (folder / "solve").read_bytes(), (folder / "train").read_bytes(), verdict.out.replace(str(folder), "")


def counterexample(attsvm, folder, threads=2, **options):
    """The bytes of the task on which a claim failed."""
    done = attsvm("claims", "global", "--tasks", 4, "--seed", 2, "--out", folder, "--quiet", "--threads", threads, **options)
    assert done.code == 0 and done.err == "", done
    return (folder / "global.npz").read_bytes()


def test_surroundings(attsvm, task, tmp_path):
    expected = files_of(attsvm, task, tmp_path / "plain", env=PLAIN)
    for name, variables in SURROUNDINGS.items():
        assert files_of(attsvm, task, tmp_path / name, env={**PLAIN, **variables}) == expected, name


def test_surroundings_of_claims(attsvm, tmp_path):
    expected = counterexample(attsvm, tmp_path / "plain", env=PLAIN)
    for name, variables in SURROUNDINGS.items():
        assert counterexample(attsvm, tmp_path / name, env={**PLAIN, **variables}) == expected, name


def test_threads(attsvm, task, tmp_path):
    expected = files_of(attsvm, task, tmp_path / "one", threads=1)
    for threads in (2, 3, 16, 256):
        assert files_of(attsvm, task, tmp_path / str(threads), threads=threads) == expected, threads


def test_kernels_beyond_the_processor_are_left_out():
    flags = "flags\t\t: fpu pni ssse3 sse4_1 sse4_2 avx avx2 fma"
    assert runnable(f"processor\t: 0\n{flags}\n") == ["Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen"]
    assert runnable(f"{flags} {' '.join(AVX512)}\n") == list(KERNELS)
    assert runnable("Features\t: fp asimd\n") == []


def test_kinds_of_processors(attsvm, tmp_path):
    """Draws have the same bytes on all. Answers need not, but each is proven, and they differ by less than asked for."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        kernels = runnable(file.read())
    if not kernels:
        pytest.skip("none of these kernels is for this processor")
    drawn, objectives, runs = set(), [], []
    for kernel in kernels:
        env = {**os.environ, "OPENBLAS_CORETYPE": kernel}
        task = tmp_path / f"{kernel}.npz"
        sizes = ["--n", 40, "--T", 12, "--d", 32]
        assert attsvm("generate", "random", *sizes, "--seed", 4, "-o", task, env=env).code == 0
        drawn.add(task.read_bytes())
        files_of(attsvm, task, tmp_path / kernel, env=env)
        with np.load(tmp_path / kernel / "solve") as solution, np.load(tmp_path / kernel / "train") as run:
            objectives.append((float(solution["dual_objective"]), float(solution["objective"])))
            runs.append(run["W"])
    assert len(drawn) == 1
    low, high = max(low for low, _ in objectives), min(high for _, high in objectives)
    assert low <= high * (1 + 1e-12), objectives
    assert all(np.allclose(W, runs[0], rtol=1e-9, atol=1e-9 * np.abs(runs[0]).max()) for W in runs)


def test_a_folder_that_nobody_may_write_to(attsvm, draw, tmp_path):
    """Not even with the rights of root, which are laid down."""
    task, closed = draw(), tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    for folder in [tmp_path, *tmp_path.parents][:3]:
        folder.chmod(folder.stat().st_mode | 0o055)
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    done = attsvm("solve", task, "-o", closed / "solution.npz", **nobody)
    assert done.code == 2 and len(done.lines()) == 1 and "cannot write" in done.err, done
    assert list(closed.iterdir()) == []
    assert attsvm("info", task, **nobody).code == 0


def test_no_room_for_more_processes(attsvm, draw):
    """Threads that cannot be started are refused with their number."""
    limits = ["prlimit", "--nproc=1", os.environ["ATTSVM_PROGRAM"]]
    if os.geteuid() == 0:
        rights = ["--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
        limits = ["setpriv", "--reuid=65533", "--regid=65533", *rights, *limits]
    done = subprocess.run([*limits, "info", "--threads", "8"], capture_output=True, text=True)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "could be started" in done.stderr, done
