"""solve and check of a task in shards by several ranks: the bytes and words of one process."""

import random
import shutil
import subprocess
import time

import numpy as np
import pytest
from test_disks import in_small_disk, refused
from test_mpi import LAUNCH, PLACE, PLUGIN, PROGRAM, answer, children, kill, lines_of_ours, ranks

pytestmark = pytest.mark.skipif(shutil.which("mpirun") is None or not PLUGIN.exists(), reason="there is no MPI")


@pytest.fixture(scope="module")
def drawn(attsvm, tmp_path_factory):
    """Two tasks, of four and of two segments of sums, in as many shards; and the first, cut within segments."""
    place = tmp_path_factory.mktemp("tasks")
    for name, queries, d, parts in (("four", 4096, 64, 4), ("two", 2048, 46, 2)):
        task = place / f"{name}.npz"
        done = attsvm("generate", "separable", "--n", queries, "--T", 2, "--d", d, "--rank", 3, "--seed", 4, "-o", task)
        assert done.code == 0, done.err
        assert attsvm("split", task, "--parts", parts, "-o", place / name).code == 0
    assert attsvm("split", place / "four.npz", "--parts", 3, "-o", place / "uneven").code == 0
    return place


def solved(attsvm, drawn, name, *options):
    """What one process finds, proven by verify: its file."""
    out = drawn / f"{name}{''.join(options)}.solution.npz"
    if not out.exists():
        assert attsvm("solve", drawn / f"{name}.npz", *options, "--threads", 1, "-o", out).code == 0
        assert attsvm("verify", drawn / f"{name}.npz", out).code == 0
    return out


@pytest.mark.parametrize("count, name", [(2, "four"), (3, "four"), (4, "four"), (3, "two")])
def test_ranks_solve_to_the_bytes_of_one_process(attsvm, count, name, drawn, tmp_path):
    one = solved(attsvm, drawn, name)
    done = ranks(count, "solve", drawn / name, "-o", tmp_path / "out.npz", "--json", "--threads", 1 + count % 2)
    assert done.returncode == 0, done.stderr
    assert answer(done.stdout)["method"] == "working set"
    assert (tmp_path / "out.npz").read_bytes() == one.read_bytes()


def test_the_words_are_those_of_one_process(attsvm, drawn, tmp_path):
    one = attsvm("solve", drawn / "two", "-o", "out.npz", "--json", cwd=tmp_path)
    done = ranks(2, "solve", drawn / "two", "-o", "out.npz", "--json", "--force", cwd=tmp_path)
    assert (done.returncode, answer(done.stdout)) == (one.code, answer(one.out)), done.stderr


def test_ranks_solve_in_the_nuclear_norm(attsvm, drawn, tmp_path):
    options = ("--norm", "nuc", "--tolerance", "1e-4")
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    assert attsvm("solve", drawn / "two", *options, "-o", one).code == 0
    done = ranks(2, "solve", drawn / "two", *options, "-o", two, "--json", "--threads", 1)
    assert done.returncode == 0, done.stderr
    assert answer(done.stdout)["method"] == "nuclear working set" and two.read_bytes() == one.read_bytes()
    assert attsvm("verify", drawn / "two.npz", two, "--tolerance", "1e-4").code == 0


def test_a_rank_reads_its_own_shards_alone(drawn, tmp_path):
    """So rank 0 has not solved it by itself."""
    for name, gone in (("zero", 1), ("one", 0)):
        shutil.copytree(drawn / "two", tmp_path / name / "shards")
        (tmp_path / name / f"shards/shard-{gone}.npz").unlink()
    places = [part for name in ("zero", "one") for part in
              (":", "--wdir", tmp_path / name, "-n", "1", PROGRAM, "solve", "shards", "-o", "out.npz")][1:]
    done = subprocess.run([*LAUNCH, *places], capture_output=True, text=True, env=PLACE, timeout=600)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "zero/out.npz").exists() and not (tmp_path / "one/out.npz").exists()


def test_shards_cut_within_a_segment_are_left_to_rank_0(attsvm, drawn, tmp_path):
    done = ranks(3, "solve", drawn / "uneven", "-o", tmp_path / "out.npz")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.npz").read_bytes() == solved(attsvm, drawn, "four").read_bytes()


def test_what_needs_all_rows_is_left_to_rank_0(attsvm, tmp_path):
    """Far more rows than unknowns are for the interior point method."""
    done = attsvm("generate", "separable", "--n", 2048, "--T", 2, "--d", 3, "--seed", 4, "-o", tmp_path / "many.npz")
    assert done.code == 0, done.err
    assert attsvm("split", tmp_path / "many.npz", "--parts", 2, "-o", tmp_path / "many").code == 0
    assert attsvm("solve", tmp_path / "many.npz", "-o", tmp_path / "one.npz").code == 0
    done = ranks(2, "solve", tmp_path / "many", "-o", tmp_path / "two.npz", "--quiet")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "two.npz").read_bytes() == (tmp_path / "one.npz").read_bytes()
    assert attsvm("verify", tmp_path / "many.npz", tmp_path / "two.npz").code == 0


def test_ranks_check_as_one_process(attsvm, drawn, tmp_path):
    arrays = {name: array for name, array in np.load(drawn / "two.npz").items() if not name.startswith("x_")}
    arrays["head"] = np.random.default_rng(0).standard_normal(46)
    np.savez(tmp_path / "scored.npz", **arrays)
    assert attsvm("split", tmp_path / "scored.npz", "--parts", 2, "-o", tmp_path / "scored").code == 0
    one = attsvm("check", tmp_path / "scored.npz", "--json")
    (tmp_path / "zero").mkdir()
    (tmp_path / "one").mkdir()
    for name, gone in (("zero", 1), ("one", 0)):  # each has its own shard alone
        shutil.copytree(tmp_path / "scored", tmp_path / name / "scored")
        (tmp_path / name / f"scored/shard-{gone}.npz").unlink()
    places = [part for name in ("zero", "one") for part in
              (":", "--wdir", tmp_path / name, "-n", "1", PROGRAM, "check", "scored", "--json", "--threads", "1")][1:]
    done = subprocess.run([*LAUNCH, *places], capture_output=True, text=True, env=PLACE, timeout=600)
    assert done.returncode == one.code == 0, done.stderr
    assert answer(done.stdout) == answer(one.out)


@pytest.mark.parametrize("spoil, words", [(lambda shard: shard.unlink(), "cannot open"),
                                          (lambda shard: shard.write_bytes(shard.read_bytes()[:-1] + b"x"), "CRC-32")])
def test_a_rank_that_cannot_use_its_shard_is_named(spoil, words, drawn, tmp_path):
    shutil.copytree(drawn / "four", tmp_path / "shards")
    spoil(tmp_path / "shards/shard-3.npz")
    done = ranks(4, "solve", "shards", "-o", "out.npz", cwd=tmp_path)
    assert done.returncode == 2 and not (tmp_path / "out.npz").exists()
    lines = lines_of_ours(done)
    assert len(lines) == 1 and lines[0].startswith("attsvm: rank 3: shards/shard-3.npz") and words in lines[0], lines


def test_a_full_disk_of_rank_0_is_one_line(drawn, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    command = [*LAUNCH, "-n", 2, PROGRAM, "solve", drawn / "two", "-o", folder / "out.npz", "--quiet"]
    words = " ".join(f"'{word}'" for word in command)
    keep = " ".join(f"{name}={value}" for name, value in PLACE.items() if name.startswith("OMPI_MCA"))
    done = in_small_disk(folder, f"{keep} {words}; code=$?; ls -A '{folder}' >&2; exit $code")
    if done is None:
        pytest.skip("nobody may mount a disk here")
    assert done.returncode == 2, done.stderr
    assert len(lines_of_ours(done)) == 1 and str(folder) in lines_of_ours(done)[0], done.stderr
    assert "out.npz.partial" not in done.stderr and done.stderr.count("out.npz") == 1, done.stderr


def test_killed_ranks_leave_no_file_behind(attsvm, drawn, tmp_path):
    pick = random.Random(7)
    begin = time.monotonic()
    assert ranks(2, "solve", drawn / "two", "-o", tmp_path / "whole.npz").returncode == 0
    whole = time.monotonic() - begin
    for case in range(4):
        count, out = pick.choice([2, 3]), tmp_path / f"{case}.npz"
        job = subprocess.Popen([*LAUNCH, "-n", str(count), PROGRAM, "solve", drawn / "two", "-o", out], env=PLACE,
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(pick.uniform(0, whole))
        there = children(job) if job.poll() is None else []
        if there:
            kill(pick.choice(there))
        _, errors = job.communicate(timeout=600)
        if job.returncode == 0:
            assert out.read_bytes() == (tmp_path / "whole.npz").read_bytes()
        else:
            assert not out.exists(), errors
