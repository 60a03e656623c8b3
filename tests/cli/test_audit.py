"""attsvm audit against NumPy's arithmetic, on heads whose job is known."""

import json
import math

import numpy as np
import pytest

D, LENGTH, SEQUENCES = 12, 10, 16
WORDS = ["the", "cat", "sat", "on", "mat", "and", "dog", "ran", "far", "away", "“ñ”"]


def text_of(rng):
    """(sequences, length) words, each at least twice in its sequence, so that induction can happen."""
    return np.array([rng.permutation(np.tile(rng.choice(len(WORDS), LENGTH // 2, replace=False), 2))
                     for _ in range(SEQUENCES)])


def model(seed=0, jobs=("previous", "first", "word", "induction", "random")):
    """Arrays of a file of heads, one per job."""
    rng = np.random.default_rng(seed)
    words = text_of(rng)
    places = np.linalg.qr(rng.normal(size=(D, D)))[0][:LENGTH]
    names = rng.normal(size=(len(WORDS), D))
    names /= np.linalg.norm(names, axis=1, keepdims=True)
    keys, queries = [], []
    for job in jobs:
        k = np.repeat(places[None], SEQUENCES, 0) if job in ("previous", "first") else names[words]
        q = {"previous": np.roll(k, 1, 1), "first": np.repeat(k[:, :1], LENGTH, 1), "word": k,
             "induction": names[words], "random": rng.normal(size=k.shape)}[job]
        if job == "induction":  # keys are the word before
            k = np.concatenate([np.zeros((SEQUENCES, 1, D)), names[words[:, :-1]]], 1)
        keys.append((k + 0.05 * rng.normal(size=k.shape)).reshape(-1, D))
        queries.append((6 * q + 0.05 * rng.normal(size=k.shape)).reshape(-1, D))
    return dict(keys=np.array(keys), queries=np.array(queries), offsets=np.arange(SEQUENCES + 1) * LENGTH,
                sequence=np.repeat(np.arange(SEQUENCES), LENGTH), position=np.tile(np.arange(LENGTH), SEQUENCES),
                text=np.array(WORDS)[words.ravel()])


def write(path, arrays):
    np.savez(path, **arrays)
    return path


@pytest.fixture(scope="module")
def heads(tmp_path_factory):
    return write(tmp_path_factory.mktemp("audit") / "heads.npz", model())


def report(attsvm, path, *words, code=0):
    done = attsvm("audit", path, "--json", *words)
    assert done.code == code, done.err
    return json.loads(done.out)


def seen(arrays, head, query, hidden=False, mask=None):
    """Tokens of the query's sequence that it sees, and their logits."""
    s = arrays["sequence"][query]
    begin, end = arrays["offsets"][s:s + 2]
    sink = arrays.get("sink", np.isin(np.arange(arrays["keys"].shape[1]), arrays["offsets"][:-1]))
    tokens = [t for t in range(end - begin) if (mask is None or mask[query, t]) and not (hidden and sink[begin + t])]
    return np.array(tokens), arrays["keys"][head][begin + np.array(tokens, int)] @ arrays["queries"][head][query]


def choices(arrays, head, hidden=False, mask=None):
    """(query, choice, gap, weight) of every query with a choice."""
    found = []
    for i in range(arrays["queries"].shape[1]):
        tokens, logits = seen(arrays, head, i, hidden, mask)
        if len(tokens) > 1:
            order = np.sort(logits)
            found.append((i, tokens[logits.argmax()], order[-1] - order[-2],
                          1 / np.exp(logits - logits.max()).sum()))
    return found


def quantiles(numbers):
    numbers = np.sort(numbers)
    return [numbers[math.floor(share * (len(numbers) - 1) + 0.5)] for share in (0.1, 0.5, 0.9)]


def test_what_heads_do(attsvm, heads):
    result = report(attsvm, heads, "--nulls", "0")
    kinds = [head["views"][0]["kinds"][0] for head in result["heads"]]
    assert kinds[0]["kind"] == "offset" and kinds[0]["words"] == "offset -1" and kinds[0]["share"] >= 0.9
    assert kinds[1] == {"kind": "constant", "share": 1.0, "words": "position 0"}
    same = {one["kind"]: one["share"] for one in result["heads"][2]["views"][0]["kinds"]}
    assert same["same word"] + same["offset"] > 0.95, "the query's word is its own or its copy"
    induction = {one["kind"]: one["share"] for one in result["heads"][3]["views"][0]["kinds"]}
    assert induction["induction"] > 0.3 and induction["same word"] < 0.3
    assert kinds[4]["share"] < 0.5
    assert result["heads"][1]["sink_weight"] > 0.9 and result["heads"][0]["sink_weight"] < 0.3
    hidden = result["heads"][1]["views"][1]
    assert hidden["view"] == "sinks hidden" and hidden["kinds"][0]["words"] != "position 0"


@pytest.mark.parametrize("hidden", [False, True])
def test_numbers_of_choices(attsvm, heads, hidden):
    arrays = model()
    result = report(attsvm, heads, "--nulls", "0")
    for h, head in enumerate(result["heads"]):
        view, expected = head["views"][int(hidden)], choices(arrays, h, hidden)
        assert view["choosing"] == len(expected)
        np.testing.assert_allclose(view["gap"], quantiles([one[2] for one in expected]), rtol=1e-9)
        np.testing.assert_allclose(view["weight"], quantiles([one[3] for one in expected]), rtol=1e-9)
        offsets = [t - arrays["position"][i] for i, t, *_ in expected]
        share = max(offsets.count(o) for o in set(offsets)) / len(expected)
        assert {one["kind"]: one["share"] for one in view["kinds"]}["offset"] == pytest.approx(share)
        keys = arrays["keys"][h]
        spread = np.sqrt(((keys - keys.mean(0))**2).sum() / len(keys))
        radii = [gap / 2 / np.linalg.norm(arrays["queries"][h][i]) / spread for i, _, gap, _ in expected]
        np.testing.assert_allclose(view["radius"], quantiles(radii), rtol=1e-9)
        smallest = min(expected, key=lambda one: one[2])
        assert view["uncertain"][0]["query"] == smallest[0] and view["uncertain"][0]["first"] == smallest[1]
    weights = []
    for i in range(arrays["queries"].shape[1]):
        _, logits = seen(arrays, 1, i)
        weights.append(np.exp(logits[0] - logits.max()) / np.exp(logits - logits.max()).sum())
    assert result["heads"][1]["sink_weight"] == pytest.approx(np.mean(weights), rel=1e-9)


def kept_queries(arrays, head, hidden, drop=0.1, mask=None, held_out=False):
    """Those of the margin problem: not held out, without the smallest gaps."""
    pool = [one for one in choices(arrays, head, hidden, mask) if (arrays["sequence"][one[0]] % 4 == 3) == held_out]
    gaps = sorted(one[2] for one in pool)
    least = gaps[math.floor(drop * len(pool))]
    return [one for one in pool if one[2] >= least]


def head_task(arrays, head, kept, hidden, mask=None):
    """The task of the margin problem, with a sequence per query."""
    tokens, offsets, select = [], [0], []
    for i, choice, *_ in kept:
        shown, _ = seen(arrays, head, i, hidden, mask)
        tokens.append(arrays["keys"][head][arrays["offsets"][arrays["sequence"][i]] + shown])
        offsets.append(offsets[-1] + len(shown))
        select.append(shown.tolist().index(choice))
    return dict(tokens=np.concatenate(tokens), offsets=offsets, select=select,
                queries=arrays["queries"][head][[one[0] for one in kept]])


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_margin_problems(attsvm, tmp_path, hidden, masked):
    """Norms, ρ, ranks and weights by kind are those of tasks built by hand."""
    arrays, mask = model(jobs=("previous", "induction")), None
    if masked:
        mask = np.tril(np.ones((LENGTH, LENGTH), bool))[arrays["position"]]
        mask[:, 3] &= arrays["position"] < 8
        arrays["visible"] = mask
    result = report(attsvm, write(tmp_path / "heads.npz", arrays), "--nulls", "0")
    for h in range(2):
        view = result["heads"][h]["views"][int(hidden)]
        kept = kept_queries(arrays, h, hidden, mask=mask)
        assert view["queries"] == len(kept)
        task = write(tmp_path / f"task{h}.npz", head_task(arrays, h, kept, hidden, mask))
        norms = {}
        for norm, field, size in (("fro", "frobenius", math.sqrt(D)), ("nuc", "nuclear", D)):
            done = attsvm("solve", task, "--norm", norm, "-o", tmp_path / f"{norm}{h}.npz", "--json")
            norms[norm] = done.json()
            assert view[field]["status"] == "optimal" and done.json()["status"] == "optimal"
            assert view[field]["objective"] == pytest.approx(done.json()["objective"], rel=1e-6)
            assert view["rows"] == done.json()["constraints"]
            rho = min(one[2] for one in kept) / size * done.json()["objective"]
            assert view[field]["rho"] == pytest.approx(rho, rel=1e-6) and 0 < rho <= 1 + 1e-6
        assert view["nuclear"]["rank"] == norms["nuc"]["rank"]
        assert view["rank_bound"] == pytest.approx((norms["nuc"]["objective"] / norms["fro"]["objective"])**2, rel=1e-6)
        assert sum(view["nuclear"]["singular_values"]) == pytest.approx(norms["nuc"]["objective"], rel=1e-6)
        solution = np.load(tmp_path / f"fro{h}.npz")
        best = solution["dual"].argmax()
        pair, (i, choice, *_) = view["pairs"][0], kept[solution["row_query"][best]]
        dropped = seen(arrays, h, i, hidden, mask)[0][solution["row_drop"][best]]
        assert (pair["query"], pair["keep"], pair["drop"]) == (i, choice, dropped)
        assert pair["weight"] == pytest.approx(solution["dual"][best] / solution["dual"].sum(), rel=1e-4)
        begin = arrays["offsets"][arrays["sequence"][i]]
        assert pair["drop_text"] == arrays["text"][begin + dropped]
        assert pair["query_text"] == arrays["text"][begin + arrays["position"][i]]
        assert sum(one["weight"] for one in view["kind_pairs"]) == pytest.approx(1)


def root(moment):
    values, axes = np.linalg.eigh(moment)
    return axes, np.sqrt(np.maximum(values, 0))


def moments(arrays, head, kept, hidden):
    used = sorted({arrays["sequence"][one[0]] for one in kept})
    keys = [arrays["keys"][head][s * LENGTH + int(hidden):(s + 1) * LENGTH] for s in used]
    centred = np.concatenate([one - one.mean(0) for one in keys])
    z = arrays["queries"][head][[one[0] for one in kept]]
    return centred.T @ centred, z.T @ z


def test_rank_curves(attsvm, heads):
    """Agreement on held-out text, by truncation with explicit matrices."""
    arrays, result = model(), report(attsvm, heads, "--nulls", "0")
    for h in range(5):
        for hidden in (False, True):
            view = result["heads"][h]["views"][int(hidden)]
            kept, judged = (kept_queries(arrays, h, hidden, held_out=one) for one in (False, True))
            (ax, sx), (az, sz) = (root(one) for one in moments(arrays, h, kept, hidden))
            left, right = ax * sx @ ax.T, az * sz @ az.T
            U, s, V = np.linalg.svd(left @ right)
            np.testing.assert_allclose(view["singular_values"], s, rtol=1e-6, atol=1e-6 * s[0])
            agreement = []
            for r in range(1, D + 1):
                W = np.linalg.pinv(left, rcond=1e-7) @ (U[:, :r] * s[:r]) @ V[:r] @ np.linalg.pinv(right, rcond=1e-7)
                hits = 0
                for i, choice, *_ in judged:
                    tokens, _ = seen(arrays, h, i, hidden)
                    begin = arrays["sequence"][i] * LENGTH
                    logits = arrays["keys"][h][begin + tokens] @ W @ arrays["queries"][h][i]
                    hits += tokens[logits.argmax()] == choice
                agreement.append(hits / len(judged))
            np.testing.assert_allclose(view["agreement"], agreement, atol=1.5 / len(judged))
            for share, field in ((0.9, "r90"), (0.95, "r95")):
                assert view["agreement"][view[field] - 1] >= share
                assert view[field] == 1 or view["agreement"][view[field] - 2] < share


def test_a_head_of_low_rank(attsvm, tmp_path):
    """Queries in a plane: rank 2 keeps every choice."""
    rng = np.random.default_rng(3)
    arrays = model(jobs=("random",))
    basis = np.linalg.qr(rng.normal(size=(D, 2)))[0]
    arrays["queries"] = (arrays["queries"] @ basis) @ basis.T
    view = report(attsvm, write(tmp_path / "heads.npz", arrays), "--nulls", "0")["heads"][0]["views"][0]
    assert view["r95"] == 2 and view["agreement"][1] == 1.0 and view["singular_values"][2] < 1e-6 * view["singular_values"][0]
    assert view["nuclear"]["rank"] <= 2 and 1 <= view["rank_bound"] <= 2 + 1e-6


def test_the_null(attsvm, tmp_path):
    """Untrained heads lie within their null; a positional head lies far above."""
    rng = np.random.default_rng(5)
    arrays = model(jobs=("previous",) + ("random",) * 20)
    arrays["keys"][1:] = rng.normal(size=arrays["keys"][1:].shape)
    result = report(attsvm, write(tmp_path / "heads.npz", arrays), "--nulls", "20")
    first = result["heads"][0]["views"][0]
    assert first["gap_over_norm"]["z"] > 5 and first["gap_over_norm"]["draws"] == 20
    kept = kept_queries(arrays, 0, False)
    assert first["gap_over_norm"]["value"] == pytest.approx(min(one[2] for one in kept) / math.sqrt(D), rel=1e-9)
    assert first["rho"]["value"] == first["frobenius"]["rho"] and first["rho"]["null_mean"] < first["rho"]["value"]
    for field in ("gap_over_norm", "rho"):
        outside = [abs(head["views"][0][field]["z"]) > 3 for head in result["heads"][1:]]
        assert np.mean(outside) <= 0.1, field
    other = report(attsvm, tmp_path / "heads.npz", "--nulls", "20", "--seed", "1", "--head", "0.0")
    assert other["heads"][0]["views"][0]["gap_over_norm"]["null_mean"] != first["gap_over_norm"]["null_mean"]


def test_coinciding_tokens_are_no_rivals(attsvm, tmp_path):
    arrays = model(jobs=("previous",))
    arrays["keys"][0, 1::LENGTH] = arrays["keys"][0, 0::LENGTH]  # the second token of each sequence repeats the first
    view = report(attsvm, write(tmp_path / "heads.npz", arrays), "--nulls", "0")["heads"][0]["views"][0]
    assert view["frobenius"]["status"] == "optimal" and view["gap"][0] > 0.1


def test_heads_without_choices(attsvm, tmp_path):
    """Nothing to choose from, or no preference, is no error, and nothing is made up."""
    arrays = model(jobs=("previous", "word", "random"))
    arrays["keys"][0] = 0
    arrays["queries"][1] = 0
    arrays["visible"] = np.eye(LENGTH, dtype=bool)[arrays["position"]]
    arrays["visible"][5:] = False
    blind = report(attsvm, write(tmp_path / "blind.npz", arrays), "--nulls", "1")
    assert [view["choosing"] for head in blind["heads"] for view in head["views"]] == [0] * 6
    del arrays["visible"]
    views = [head["views"][0] for head in report(attsvm, write(tmp_path / "flat.npz", arrays), "--nulls", "1")["heads"]]
    assert [view["frobenius"]["status"] for view in views] == ["not run", "not run", "optimal"]
    assert [view["queries"] for view in views][:2] == [0, 0] and views[0]["gap"] == [None] * 3
    assert attsvm("audit", tmp_path / "flat.npz", "--nulls", "1", "--head", "0.0").code == 0


def test_threads_give_the_same_bytes(attsvm, heads, tmp_path):
    results = []
    for threads in ("1", "2", "3"):
        result = report(attsvm, heads, "--nulls", "2", "--threads", threads, "-o", tmp_path / f"{threads}.npz")
        for head in result["heads"]:
            del head["seconds"]
        results.append(result["heads"])
    assert results[0] == results[1] == results[2]
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes() == (tmp_path / "3.npz").read_bytes()
    with np.load(tmp_path / "1.npz") as file:
        assert file["agreement"].shape == (2, 5, D) and file["kind"].shape == (2, 5, 4)
        assert file["r95"][1, 0] == results[0][0]["views"][1]["r95"]
        np.testing.assert_array_equal(file["gap"][0, 2], results[0][2]["views"][0]["gap"])
        np.testing.assert_array_equal(file["layer"], [0] * 5)


def test_time_limit(attsvm, tmp_path):
    """What needs no solver is there, and what is missing says so."""
    rng = np.random.default_rng(0)
    size = (1, 1200, 48)
    arrays = dict(keys=rng.normal(size=size), queries=rng.normal(size=size), offsets=np.arange(0, 1201, 40),
                  sequence=np.repeat(np.arange(30), 40), position=np.tile(np.arange(40), 30))
    result = report(attsvm, write(tmp_path / "heads.npz", arrays), "--time-limit", "0.01", "-o", tmp_path / "a.npz", code=4)
    [head] = result["heads"]
    assert not head["complete"] and not result["complete"]
    assert len(head["views"][0]["agreement"]) == 48 and head["views"][0]["gap"][1] > 0
    assert head["views"][1]["nuclear"]["status"] == "not run" and head["views"][1]["nuclear"]["objective"] is None
    assert (tmp_path / "a.npz").exists()


def test_tables(attsvm, heads):
    done = attsvm("audit", heads, "--nulls", "2")
    assert done.code == 0 and "offset -1" in done.out and len(done.out.splitlines()) == 12
    assert max(map(len, done.out.splitlines())) <= 110
    done = attsvm("audit", heads, "--nulls", "2", "--head", "0.3,0.0")
    assert "head 0.3" in done.out and "support pairs" in done.out and "» keeps «" in done.out and "least certain" in done.out


def test_cross_attention_and_groups(attsvm, tmp_path):
    arrays = model(jobs=("word",))
    del arrays["position"]
    arrays.update(queries=np.concatenate([arrays["queries"]] * 2), key_head=[0, 0], query_text=arrays["text"],
                  layer=[3, 3], head=[4, 7])
    result = report(attsvm, write(tmp_path / "heads.npz", arrays), "--nulls", "1")
    assert [(one["layer"], one["head"]) for one in result["heads"]] == [(3, 4), (3, 7)]
    kinds = {one["kind"]: one["share"] for one in result["heads"][1]["views"][0]["kinds"]}
    assert set(kinds) == {"constant", "same word"} and kinds["same word"] == 1.0
    assert result["heads"][0]["views"][0]["frobenius"]["objective"] == result["heads"][1]["views"][0]["frobenius"]["objective"]
    assert attsvm("audit", tmp_path / "heads.npz", "--nulls", "0", "--head", "3.7").code == 0


REFUSALS = [
    (lambda a: a.pop("queries"), "queries is missing"),
    (lambda a: a.update(keys=a["keys"][0]), r"keys has shape (160,12); must be (g,N,d)"),
    (lambda a: a.update(queries=a["queries"][:, :, :5]), "queries has shape (2,160,5); its last size must be 12"),
    (lambda a: a.update(queries=a["queries"][:1]), "heads that share keys need key_head"),
    (lambda a: a["keys"].__setitem__((1, 3, 2), np.nan), "keys[1][3,2] = nan; must be finite"),
    (lambda a: a["queries"].__setitem__((0, 7, 1), np.inf), "queries[0][7,1] = inf; must be finite"),
    (lambda a: a.update(key_head=[0, 2]), "key_head[1] = 2; must be from 0 to 1"),
    (lambda a: a.update(layer=[0]), "layer has shape (1); must be (2), one entry per head"),
    (lambda a: a.update(head=[0.5, 1]), "head has type float64; must be integers"),
    (lambda a: a["offsets"].__setitem__(-1, 150), "offsets runs from 0 to 150; must run from 0 to 160"),
    (lambda a: a["offsets"].__setitem__(2, 10), "offsets[2] = 10 after 10; a sequence has at least one token"),
    (lambda a: a.pop("sequence"), "sequence is missing; with 16 sequences"),
    (lambda a: a["sequence"].__setitem__(5, 16), "sequence[5] = 16; must be from 0 to 15"),
    (lambda a: a["position"].__setitem__(9, 10), "position[9] = 10; must be from 0 to 9"),
    (lambda a: a.update(visible=np.zeros(160, int)), "visible[0] = 0; must be from 1 to 10"),
    (lambda a: a.update(visible=np.ones((160, 9), bool)), "visible has shape (160,9); must be (160,10) or (2,160,10)"),
    (lambda a: a.update(text=a["text"][1:]), "text has shape (159,"),
    (lambda a: a.update(text=np.zeros(160)), "text has type float64"),
    (lambda a: a.update(ids=np.zeros(3, int)), "ids has shape (3); must be (160), one entry per token"),
    (lambda a: a.update(sink=np.zeros(160)), "sink has type float64; must be bool"),
    (lambda a: a.update(sink=np.zeros(9, bool)), "sink has shape (9); must be (160), one entry per token"),
    (lambda a: a.update(keys=a["keys"] > 0), "keys has type bool; must be numbers"),
    (lambda a: a.update(keys=a["keys"][:, :0]), "keys has shape (2,0,12); must be (g,N,d)"),
    (lambda a: a.update(layer=[0, -1]), "layer[1] = -1; must be from 0"),
    (lambda a: a.update(key_head=[0.0, 1.0]), "key_head has type float64; must be integers"),
    (lambda a: a.update(offsets=np.zeros((2, 2), int)), "offsets has shape (2,2); must be (n+1)"),
    (lambda a: a.update(offsets=[160]), "offsets has shape (1); must be (n+1)"),
    (lambda a: a.update(sequence=a["sequence"][:3]), "sequence has shape (3); must be (160), one entry per query"),
    (lambda a: a.update(position=a["position"][:, None]), "position has shape (160,1); must be (160)"),
    (lambda a: a["position"].__setitem__(4, -1), "position[4] = -1; must be from 0 to 9"),
    (lambda a: a.update(visible=np.full(160, 11)), "visible[0] = 11; must be from 1 to 10"),
    (lambda a: a.update(visible=np.ones(160)), "visible has type float64; must be integers"),
    (lambda a: a.update(query_text=["a"] * 159), "query_text has shape (159,1); must be (160), one entry per query"),
    (lambda a: a.update(difference=np.zeros(3)), "difference has shape (3); must be (2), one entry per head"),
    (lambda a: a.update(ids=np.zeros(160)), "ids has type float64; must be integers"),
    (lambda a: a.update(querys=1), "unknown array 'querys'; a file of heads has keys queries"),
]


@pytest.mark.parametrize("change, words", REFUSALS, ids=[words[:30] for _, words in REFUSALS])
def test_refusals(attsvm, tmp_path, change, words):
    arrays = model(jobs=("previous", "word"))
    change(arrays)
    done = attsvm("audit", write(tmp_path / "bad.npz", arrays), "-o", tmp_path / "out.npz", "--json")
    assert done.code == 2 and not done.out and len(done.err.splitlines()) == 1
    assert "bad.npz" in done.err and words in done.err, done.err
    assert not (tmp_path / "out.npz").exists()


def test_info(attsvm, heads, tmp_path):
    listed = {one["name"]: one["shape"] for one in attsvm("info", heads, "--json").json()["arrays"]}
    assert listed["keys"] == [5, SEQUENCES * LENGTH, D] and "text" in listed
    bad = attsvm("info", write(tmp_path / "bad.npz", dict(model(), layer=[0])))
    assert bad.code == 2 and "layer has shape (1)" in bad.err


def test_refused_options(attsvm, heads, tmp_path):
    for words, message in ((["--head", "0.9"], "there is no head 0.9"), (["--queries", "0"], "queries"),
                           (["--drop", "1"], "drop"), (["--time-limit", "-1"], "time-limit"),
                           (["-o", heads], "heads.npz")):
        done = attsvm("audit", heads, *words)
        assert done.code == 2 and message in done.err and len(done.err.splitlines()) == 1, done.err
    write(tmp_path / "own.npz", dict(model(), x_note=np.ones(3)))
    assert attsvm("audit", tmp_path / "own.npz", "--nulls", "0").code == 0
    for name in ("keys", "text"):
        with open(tmp_path / "own.npz", "rb") as file:
            data = bytearray(file.read())
        place = data.index(name.encode() + b".npy") + 200
        data[place] ^= 0xFF
        (tmp_path / "damaged.npz").write_bytes(data)
        done = attsvm("audit", tmp_path / "damaged.npz")
        assert done.code == 2 and "damaged.npz" in done.err
