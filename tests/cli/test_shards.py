"""Tasks in shards: split and its manifest, every verb on a folder of shards, and ranks that each read some of them."""

import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from test_mpi import LAUNCH, PLACE, PLUGIN, PROGRAM, answer, children, kill, lines_of_ours, ranks

needs_mpi = pytest.mark.skipif(shutil.which("mpirun") is None or not PLUGIN.exists(), reason="there is no MPI")


def drawn(attsvm, path, n, *options):
    done = attsvm("generate", "random", "--n", n, "--T", 4, "--d", 6, "--seed", 3, *options, "-o", path)
    assert done.code == 0, done.err
    return path


def manifest(folder):
    return json.loads((folder / "shards.json").read_text())


def sizes(folder):
    return [shard["queries"] for shard in manifest(folder)["shards"]]


@pytest.fixture(scope="module")
def folder(attsvm, tmp_path_factory):
    """A task of 4,200 queries, four segments of sums, and its shards: cut in four, and as someone else may have cut it:
    unequal ones, within a segment."""
    place = tmp_path_factory.mktemp("shards")
    task = drawn(attsvm, place / "task.npz", 4200)
    assert attsvm("split", task, "--parts", 4, "-o", place / "four").code == 0
    arrays = dict(np.load(task))
    for k, (begin, end) in enumerate(((0, 40), (40, 3500), (3500, 3501), (3501, 4200))):
        part = {name: array[begin:end] if len(array) == 4200 else array for name, array in arrays.items()}
        (place / "unequal").mkdir(exist_ok=True)
        np.savez(place / f"unequal/part{k}.npz", **part)
    done = attsvm("split", place / "unequal", "--list")
    assert done.code == 0, done.err
    return place


def test_split_says_what_it_wrote(attsvm, folder, tmp_path):
    done = attsvm("split", folder / "task.npz", "--parts", 3, "-o", tmp_path / "three", "--json")
    found = done.json()
    assert found["parts"] == 3 and [shard["queries"] for shard in found["shards"]] == sizes(tmp_path / "three")
    assert sum(sizes(tmp_path / "three")) == 4200 and max(sizes(tmp_path / "three")) - min(sizes(tmp_path / "three")) <= 1
    assert found["fingerprint"] == manifest(folder / "unequal")["fingerprint"] == manifest(folder / "four")["fingerprint"]
    assert attsvm("split", folder / "task.npz", "--parts", 3, "-o", tmp_path / "three").code == 2  # it is there
    again = attsvm("split", folder / "task.npz", "--parts", 2, "-o", tmp_path / "three", "--force")
    assert again.code == 0 and len(sizes(tmp_path / "three")) == 2
    assert "2 shards of 2100 to 2100 queries" in again.out


@pytest.mark.parametrize("options", [("--attention", "self"), ("--attention", "causal"), ("--attention", "prompt"),
                                     ("--shortest", 2), ("--head", "relu"), ("--head", "quadratic")])
def test_shards_together_are_the_task(attsvm, options, tmp_path):
    """Kinds of attention, lengths and heads; the fingerprint covers every array of a task."""
    task = drawn(attsvm, tmp_path / "task.npz", 7, *options)
    assert attsvm("split", task, "--parts", 3, "-o", tmp_path / "shards").code == 0
    for name in ("task.npz", "shards", "shards/shards.json"):
        run = tmp_path / (name.replace("/", "_") + ".run.npz")
        assert attsvm("train", tmp_path / name, "--steps", 20, "-o", run).code == 0
    one = (tmp_path / "task.npz.run.npz").read_bytes()
    assert (tmp_path / "shards.run.npz").read_bytes() == one == (tmp_path / "shards_shards.json.run.npz").read_bytes()


def test_masks_labels_and_biases_survive(attsvm, tmp_path):
    """The bias of tokens that nothing sees is not zero, and belongs to no task."""
    random = np.random.default_rng(0)
    visible, select = random.random((9, 5)) < 0.5, np.zeros((9, 5), bool)
    visible[:, 2] = select[:, 2] = True
    lengths = random.integers(3, 6, 9)
    visible &= np.arange(5) < lengths[:, None]
    np.savez(tmp_path / "task.npz", tokens=random.normal(size=(lengths.sum(), 3)), offsets=np.append(0, lengths.cumsum()),
             keys=random.normal(size=(lengths.sum(), 4)), queries=random.normal(size=(9, 2)), visible=visible, select=select,
             bias=random.normal(size=(9, lengths.max())),
             labels=np.where(random.random(9) < 0.5, 1.0, -1.0), head=random.normal(size=3), sequence=np.arange(9))
    assert attsvm("split", tmp_path / "task.npz", "--parts", 4, "-o", tmp_path / "shards").code == 0
    for verb, files in (("solve", ()), ("train", ("--steps", 10))):
        for name in ("task.npz", "shards"):
            done = attsvm(verb, tmp_path / name, *files, "-o", tmp_path / f"{verb}.{name}.out")
            assert done.code in (0, 3), done.err
        assert (tmp_path / f"{verb}.task.npz.out").read_bytes() == (tmp_path / f"{verb}.shards.out").read_bytes()
    assert attsvm("verify", tmp_path / "shards", tmp_path / "solve.shards.out").code == 0
    listed = attsvm("info", tmp_path / "shards", "--json").json()
    assert listed["queries"] == 9 and listed["file"] == str(tmp_path / "shards")


def test_a_sequence_is_never_cut(attsvm, tmp_path):
    random = np.random.default_rng(1)
    np.savez(tmp_path / "task.npz", tokens=random.normal(size=(3, 4, 2)), head=np.ones(2),
             queries=random.normal(size=(5, 2)), sequence=np.array([0, 1, 0, 2, 2]))
    done = attsvm("split", tmp_path / "task.npz", "--parts", 3, "-o", tmp_path / "shards")
    assert done.code == 2 and "can be cut into 2 parts at most" in done.err and not (tmp_path / "shards").exists()
    assert attsvm("split", tmp_path / "task.npz", "--parts", 2, "-o", tmp_path / "shards").code == 0
    assert sizes(tmp_path / "shards") == [3, 2]


def spoil_bytes(folder):
    file = folder / "shard-1.npz"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def spoil_manifest(folder, change):
    found = manifest(folder)
    change(found)
    (folder / "shards.json").write_text(json.dumps(found))


WRONG = {
    "hash": (spoil_bytes, "shard-1.npz: its CRC-32 is "),
    "missing": (lambda folder: (folder / "shard-2.npz").unlink(), "shard-2.npz: cannot open: No such file or directory"),
    "cut": (lambda folder: os.truncate(folder / "shard-2.npz", 100), "shard-2.npz: has 100 bytes; the manifest says "),
    "empty file": (lambda folder: os.truncate(folder / "shard-0.npz", 0), "shard-0.npz: has 0 bytes; the manifest says "),
    "no manifest": (lambda folder: (folder / "shards.json").unlink(), "shards.json: cannot open"),
    "json": (lambda folder: (folder / "shards.json").write_text("{"), "shards.json: not valid JSON"),
    "version": (lambda folder: spoil_manifest(folder, lambda all: all.update(attsvm_shards=2)), "reads version 1"),
    "d": (lambda folder: spoil_manifest(folder, lambda all: all.update(d=7)), "shard-0.npz: d is 6; the manifest says 7"),
    "longest": (lambda folder: spoil_manifest(folder, lambda all: all.update(longest=all["longest"] - 1)), "longest is "),
    "longest of a shard": (lambda folder: spoil_manifest(folder, lambda all: [
        all.update(longest=all["longest"] + 1), all["shards"][0].update(longest=all["longest"])]),
        "shard-0.npz: the number of tokens of the longest sequence is "),
    "fingerprint": (lambda folder: spoil_manifest(folder, lambda all: all.update(fingerprint=2**32)), "fingerprint is "),
    "no name": (lambda folder: spoil_manifest(folder, lambda all: all["shards"][0].update(file="a\0.npz")), "file is "),
    "no shards": (lambda folder: spoil_manifest(folder, lambda all: all.update(shards=[])), "shards must be a list"),
    "empty shard": (lambda folder: spoil_manifest(folder, lambda all: all["shards"][1].update(queries=0)),
                    "shards[1]: a shard has at least one query"),
    "order": (lambda folder: spoil_manifest(folder, lambda all: all["shards"].reverse()), "first_query is "),
    "path": (lambda folder: spoil_manifest(folder, lambda all: all["shards"][0].update(file="../task.npz")),
             "must be the name of an .npz file, without a folder"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_folder_is_refused(attsvm, case, folder, tmp_path):
    shutil.copytree(folder / "four", tmp_path / "shards")
    spoil, words = WRONG[case]
    spoil(tmp_path / "shards")
    done = attsvm("train", tmp_path / "shards", "-o", tmp_path / "run.npz")
    assert done.code == 2 and len(done.lines()) == 1 and words in done.err, done.err
    assert not (tmp_path / "run.npz").exists()


@pytest.mark.parametrize("change, words", [(lambda part: part.update(tokens=part["tokens"][:, :, :5], head=np.ones(5)),
                                            "b.npz: d is 5, but 6 in "),
                                           (lambda part: part.update(queries=part["queries"][:, :5]), "dz is 5, but 6 in "),
                                           (lambda part: part.update(head=part["head"] + 1), "b.npz: head is not that of "),
                                           (lambda part: part.update(select=np.zeros(len(part["queries"]), int)),
                                            "b.npz: select is given, unlike in "),
                                           (lambda part: part.update(bias=np.ones(part["tokens"].shape[:2])),
                                            "b.npz: bias is given, unlike in ")])
def test_files_of_different_tasks_are_refused(attsvm, change, words, folder, tmp_path):
    part = dict(np.load(folder / "unequal/part0.npz"))
    np.savez(tmp_path / "a.npz", **part)
    change(part)
    np.savez(tmp_path / "b.npz", **part)
    done = attsvm("split", tmp_path, "--list")
    assert done.code == 2 and len(done.lines()) == 1 and words in done.err, done.err
    assert not (tmp_path / "shards.json").exists()


def test_bad_usage_of_split(attsvm, folder, tmp_path):
    for options in ((), ("--parts", 2), ("--list", "--parts", 2), ("-o", tmp_path / "x")):
        done = attsvm("split", folder / "task.npz", *options)
        assert done.code == 2 and len(done.lines()) == 1, done.err
    corpus = attsvm("generate", "nexttoken", "--n", 6, "-o", tmp_path / "next.npz")
    assert corpus.code == 0
    done = attsvm("split", tmp_path / "next.npz", "--parts", 2, "-o", tmp_path / "x")
    assert done.code == 2 and "a next-token task cannot be in parts" in done.err
    shutil.copytree(folder / "four", tmp_path / "shards")
    done = attsvm("train", tmp_path / "shards", "-o", tmp_path / "shards/shard-1.npz", "--force")
    assert done.code == 2 and "it is an input of this command" in done.err


def test_split_overwrites_neither_its_input_nor_others_files(attsvm, folder, tmp_path):
    shutil.copytree(folder / "four", tmp_path / "shards")
    before = {path.name: path.read_bytes() for path in (tmp_path / "shards").iterdir()}
    for task in ("shards", "shards/shards.json", "shards/shard-0.npz", "shards/shard-3.npz"):
        done = attsvm("split", tmp_path / task, "--parts", 2, "-o", tmp_path / "shards", "--force")
        assert done.code == 2 and "it is an input of this command" in done.err, (task, done.err)
    (tmp_path / "others").mkdir()
    (tmp_path / "others/shard-1.npz").write_text("mine")
    done = attsvm("split", folder / "task.npz", "--parts", 2, "-o", tmp_path / "others")
    assert done.code == 2 and "shard-1.npz: already exists" in done.err
    assert [path.name for path in (tmp_path / "others").iterdir()] == ["shard-1.npz"]
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "shards").iterdir()}


def test_splitting_again_leaves_no_old_shards(attsvm, folder, tmp_path):
    for parts in (3, 2):
        assert attsvm("split", folder / "task.npz", "--parts", parts, "-o", tmp_path / "shards", "--force").code == 0
    assert sorted(path.name for path in (tmp_path / "shards").iterdir()) == ["shard-0.npz", "shard-1.npz", "shards.json"]


# What is trained, and how; dropout and batches draw numbers by the query's place in the whole task.
RUNS = {
    "W": (),
    "KQ": ("--param", "KQ", "--optimizer", "adam", "--width", 3),
    "joint": ("--joint", "--optimizer", "gd", "--loss", "exponential"),
    "batches": ("--batch", 700, "--dropout", 0.3, "--optimizer", "muon"),
    "gumbel": ("--selector", "gumbel", "--entropy", 0.1, "--temperature", "1:0.5", "--optimizer", "lion"),
    "polyak": ("--optimizer", "polyak"),
    "plain": ("--arithmetic", "plain", "--batch", 50, "--label-smoothing", 0.1),
}


@needs_mpi
@pytest.mark.parametrize("name", RUNS)
def test_ranks_train_to_the_bytes_of_one_process(attsvm, name, folder, tmp_path):
    options = ("train", "--steps", 12, "--record", "every:3", *RUNS[name], "--json", "-o", "run.npz")
    for place in ("one", "two", "three", "four"):
        (tmp_path / place).mkdir()
    one = attsvm(*options, folder / "task.npz", "--threads", 1, cwd=tmp_path / "one")
    assert one.code == 0, one.err
    for count, place, shards in ((2, "two", "unequal"), (3, "three", "four"), (4, "four", "unequal")):
        done = ranks(count, *options, folder / shards, "--threads", 1 + count % 2, cwd=tmp_path / place)
        assert done.returncode == 0, done.stderr
        assert answer(done.stdout) == answer(one.out)
        assert (tmp_path / place / "run.npz").read_bytes() == (tmp_path / "one/run.npz").read_bytes()


@needs_mpi
def test_more_ranks_than_shards_and_small_tasks(attsvm, folder, tmp_path):
    small = drawn(attsvm, tmp_path / "small.npz", 9)
    for task, parts in ((folder / "task.npz", 2), (small, 3)):
        shards = tmp_path / f"{task.stem}{parts}"
        assert attsvm("split", task, "--parts", parts, "-o", shards).code == 0
        for count, source, out in ((1, task, "one.npz"), (4, shards, "four.npz")):
            done = ranks(count, "train", source, "--steps", 30, "-o", tmp_path / out, "--force")
            assert done.returncode == 0, done.stderr
        assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "four.npz").read_bytes()


@needs_mpi
@pytest.mark.parametrize("case", ["hash", "missing", "json"])
def test_a_rank_that_cannot_use_its_shard_is_named(case, folder, tmp_path):
    shutil.copytree(folder / "four", tmp_path / "shards")
    spoil, words = WRONG[case]
    spoil(tmp_path / "shards")
    done = ranks(4, "train", "shards", "-o", "run.npz", cwd=tmp_path)
    assert done.returncode == 2 and not (tmp_path / "run.npz").exists()
    lines = lines_of_ours(done)
    assert len(lines) == 1 and words in lines[0], done.stderr
    if case != "json":
        assert lines[0].startswith(f"attsvm: rank {1 if case == 'hash' else 2}: shards/shard-")


@needs_mpi
def test_a_rank_reads_its_own_shards_alone(folder, tmp_path):
    """Rank 1 of two has another folder, where the shards of rank 0 are missing."""
    for name, gone in (("zero", (2, 3)), ("one", (0, 1))):
        shutil.copytree(folder / "four", tmp_path / name / "shards")
        for k in gone:
            (tmp_path / name / f"shards/shard-{k}.npz").unlink()
    places = [part for name in ("zero", "one") for part in
              (":", "--wdir", tmp_path / name, "-n", "1", PROGRAM, "train", "shards", "-o", "run.npz", "--steps", "5")][1:]
    done = subprocess.run([*LAUNCH, *places], capture_output=True, text=True, env=PLACE, timeout=600)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "zero/run.npz").exists() and not (tmp_path / "one/run.npz").exists()


@needs_mpi
def test_a_killed_rank_ends_the_job_and_the_run_resumes(attsvm, folder, tmp_path):
    options = ("train", "--steps", 400, "--checkpoint", 0.001, "-o", "run.npz")
    (tmp_path / "one").mkdir()
    assert attsvm(*options, folder / "task.npz", cwd=tmp_path / "one").code == 0
    def written():
        journal = tmp_path / "run.npz.journal"
        return journal.stat().st_mtime_ns if journal.exists() else None

    for count, victim in ((3, 2), (2, 0)):
        before = written()
        job = subprocess.Popen([*LAUNCH, "-n", str(count), PROGRAM, *map(str, options), folder / "four", "--resume"],
                               cwd=tmp_path, env=PLACE, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while job.poll() is None and written() == before:
            time.sleep(0.002)
        if job.poll() is None:
            kill(children(job)[victim])
        _, errors = job.communicate(timeout=600)
        assert job.returncode == 0 or "exited on signal 9" in errors, errors
    done = ranks(4, *options, folder / "unequal", "--resume", "--force", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run.npz").read_bytes() == (tmp_path / "one/run.npz").read_bytes()


@needs_mpi
def test_a_signal_lets_rank_0_write_what_it_has(folder, tmp_path):
    job = subprocess.Popen([*LAUNCH, "-n", "3", PROGRAM, "train", folder / "four", "-o", "run.npz", "--steps", "1000000000",
                            "--checkpoint", "0.01", "--json"], cwd=tmp_path, env=PLACE, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    while job.poll() is None and not list(tmp_path.glob("*run.npz*")):
        time.sleep(0.01)
    for rank in reversed(children(job)):
        os.kill(rank, signal.SIGINT)
    out, errors = job.communicate(timeout=600)
    assert job.returncode == 130, errors
    assert json.loads(out)["stopped"] == "interrupted" and (tmp_path / "run.npz").exists()


@pytest.fixture(scope="module")
def solved(attsvm, tmp_path_factory):
    """A task so large that verify uses doubles with error bounds, cut in three, and a solution."""
    place = tmp_path_factory.mktemp("solved")
    assert attsvm("generate", "separable", "--n", 2000, "--T", 8, "--d", 170, "--rank", 4, "-o", place / "task.npz").code == 0
    assert attsvm("solve", place / "task.npz", "--tolerance", 1e-3, "-o", place / "good.npz").code == 0
    assert attsvm("split", place / "task.npz", "--parts", 3, "-o", place / "shards").code == 0
    return place


def changed(solution, path, change):
    arrays = dict(np.load(solution))
    change(arrays)
    np.savez(path, **arrays)


def at(name, index, value):
    return lambda arrays: arrays[name].__setitem__(index, value)


# Rows 9,000 and later are those of the last two ranks.
CLAIMS = {
    "good": lambda arrays: None,
    "slack": at("slack", 9000, 0.25),
    "negative": at("dual", 13000, -1e-3),
    "multiplier": at("dual", 9001, 0.5),
    "violated": lambda arrays: arrays["W"].__imul__(0.9),
    "row": lambda arrays: arrays["row_drop"].__setitem__(9002, arrays["row_drop"][9002] + 1),
    "fewer": lambda arrays: arrays.update({name: arrays[name][:-1] for name in
                                           ("row_query", "row_keep", "row_drop", "row_equal", "rhs", "slack", "dual")}),
    "short": lambda arrays: arrays.update(slack=arrays["slack"][:-1]),
    "unsorted": at("row_query", 9003, 1999),
    "selection": lambda arrays: arrays["select"].__setitem__(1500, np.roll(arrays["select"][1500], 1)),
    "nothing kept": at("select", 1700, False),
    "objective": lambda arrays: arrays.update(objective=arrays["objective"] * 1.001),
    "norm": lambda arrays: arrays.update(norm=np.array("lp:0")),
    "W alone": lambda arrays: [arrays.pop(name) for name in list(arrays) if name not in ("W", "select")],
    "relaxed": lambda arrays: arrays["relax"].__setitem__(1999, True),
}


@needs_mpi
@pytest.mark.parametrize("case", CLAIMS)
def test_ranks_verify_as_one_process(attsvm, case, solved, tmp_path):
    changed(solved / "good.npz", tmp_path / "claim.npz", CLAIMS[case])
    options = ("verify", solved / "shards", tmp_path / "claim.npz", "--tolerance", 1e-3)
    one = attsvm(*options, "--json")
    assert one.code == (0 if case in ("good", "W alone") else 5), one.out + one.err
    count = 2 + list(CLAIMS).index(case) % 3
    done = ranks(count, *options, "--json", "--threads", 1)
    assert done.returncode == one.code and answer(done.stdout) == answer(one.out), done.stderr
    if case == "good":
        assert ranks(count, *options, "--threads", 1).stdout == attsvm(*options).out


@needs_mpi
def test_verify_reads_its_own_shards_alone(solved, tmp_path):
    """So rank 0 has not judged the task by itself."""
    for name, gone in (("zero", (1, 2)), ("one", (0, 2)), ("two", (0, 1))):
        shutil.copytree(solved / "shards", tmp_path / name / "shards")
        shutil.copy(solved / "good.npz", tmp_path / name)
        for k in gone:
            (tmp_path / name / f"shards/shard-{k}.npz").unlink()
    places = [part for name in ("zero", "one", "two") for part in
              (":", "--wdir", tmp_path / name, "-n", "1", PROGRAM, "verify", "shards", "good.npz", "--tolerance", "1e-3")][1:]
    done = subprocess.run([*LAUNCH, *places], capture_output=True, text=True, env=PLACE, timeout=600)
    assert done.returncode == 0 and "valid" in done.stdout, done.stderr


@needs_mpi
def test_certificates_and_small_tasks_are_verified(attsvm, solved, folder, tmp_path):
    arrays = dict(np.load(solved / "task.npz"))
    arrays = {name: array for name, array in arrays.items() if not name.startswith("x_")}
    arrays["tokens"][1800, 1] = arrays["tokens"][1800, 0]
    arrays["select"] = np.zeros(2000, int)  # one of two equal tokens
    np.savez(tmp_path / "hard.npz", **arrays)
    for task, parts, code in ((tmp_path / "hard.npz", 2, 3), (folder / "task.npz", 4, None)):
        solution = tmp_path / f"{task.stem}.solution.npz"
        found = attsvm("solve", task, "-o", solution)
        assert found.code == code if code else found.code in (0, 3), found.err
        assert attsvm("split", task, "--parts", parts, "-o", tmp_path / task.stem).code == 0
        one = attsvm("verify", task, solution, "--json")
        done = ranks(2, "verify", tmp_path / task.stem, solution, "--json")
        assert (one.code, done.returncode) == (0, 0) and answer(one.out) == answer(done.stdout), done.stderr
