"""attsvm capacity."""

import json
import os
import signal
import subprocess
import time

import pytest

SMALL = ("--n", 12, "--T", 4, "--d", 4, "--draws", 20)


def test_json_fields_and_threads(attsvm):
    seen = []
    for threads in (1, 2):
        result = attsvm("capacity", *SMALL, "--width", 2, "--heads", 2, "--json", "--threads", threads)
        assert result.code == 0 and result.err == "" and result.out.count("\n") == 1, result
        fields = result.json()
        assert fields["command"] == "capacity" and fields["rows"] == 36 and fields["unknowns"] == 16
        seen.append({name: fields[name] for name in fields if name not in ("seconds", "threads")})
    assert seen[0] == seen[1]
    for name in ("separable", "all_heads", "fits_width", "global"):
        share = seen[0][name]
        assert 0 <= share["low"] <= share["share"] <= share["high"] <= 1 and share["of"] == 20
    search = seen[0]["smallest_d"]
    assert search["complete"] and search["low"] <= search["high"]
    assert [point["d"] for point in search["points"]] == sorted(point["d"] for point in search["points"])


def test_words(attsvm):
    text = attsvm("capacity", *SMALL, "--attention", "prompt", "--want", 0, "--runs", 0).out
    assert text.startswith("prompt attention, n = 12, T = 4, d = 4, dz = 1: 36 rows, 4 unknowns")
    assert "separable" in text and "training" not in text and "smallest d" not in text
    always = attsvm("capacity", "--n", 4, "--T", 9, "--d", 4, "--draws", 5).out
    assert "every selection is separable, with probability 1" in always and "5 of 5" in always


@pytest.mark.parametrize("options, words", [
    (["--n", 0], "n = 0"), (["--T", 1], "T = 1"), (["--d", 0], "d = 0"), (["--width", 9], "width = 9"),
    (["--attention", "self", "--dz", 3], "dz = 3"), (["--attention", "causal"], "causal"), (["--want", 1], "wanted = 1"),
    (["--n", "1e9"], "numbers"), (["--draws", 0], "draws = 0")])
def test_bad_sizes_are_refused(attsvm, options, words):
    sizes = dict(zip(SMALL[::2], SMALL[1::2]))
    sizes.update(zip(options[::2], options[1::2]))
    result = attsvm("capacity", *(word for pair in sizes.items() for word in pair))
    assert result.code == 2 and result.out == "" and len(result.err.splitlines()) == 1, result
    assert words in result.err


def test_time_limit_leaves_the_counts_so_far(attsvm):
    result = attsvm("capacity", "--n", 8, "--T", 2, "--d", 4, "--draws", 10 ** 7, "--time-limit", 2, "--json")
    fields = result.json()
    assert result.code == 4 and not fields["complete"] and 0 < fields["separable"]["of"] < 10 ** 7


def test_ctrl_c_leaves_the_counts_so_far():
    process = subprocess.Popen([os.environ["ATTSVM_PROGRAM"], "capacity", "--n", "8", "--T", "2", "--d", "4",
                                "--draws", "10000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130 and "separable" in out and "counts so far" in err


def page_of(path):
    return json.loads(path.read_text().split('id="data">')[1].split("</script>")[0])


def test_a_stop_leaves_the_page_of_the_counts_so_far(attsvm, stopped, tmp_path):
    page = tmp_path / "sizes.html"
    long = ("capacity", "--n", 8, "--T", 2, "--d", 4, "--draws", 10 ** 7, "--page", page, "--json")
    for stop in (lambda: stopped(*long, sign="draws"), lambda: attsvm(*long, "--time-limit", 1, "--force")):
        result = stop()
        told, data = result.json(), page_of(page)
        assert result.code == (4 if told["time_limit"] else 130) and told["page"] == str(page)
        assert not data["complete"] and data["separable"] == told["separable"]
        assert data["prediction"] == {"d": [], "chance": []}


def test_a_page_whose_name_is_no_text(attsvm, tmp_path):
    result = attsvm("capacity", *SMALL, "--want", 0, "--runs", 0, "--page", b"\xff\xfe.html".decode(errors="surrogateescape"),
                    "--json", cwd=tmp_path)
    assert result.code == 0 and result.err == "", result
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff\xfe.html"]
    os.rename(os.fsencode(tmp_path) + b"/\xff\xfe.html", tmp_path / "page.html")
    assert "\ufffd\ufffd.html" in page_of(tmp_path / "page.html")["command"]


def test_there_is_nothing_to_replace_without_a_page(attsvm):
    result = attsvm("capacity", *SMALL, "--force")
    assert result.code == 2 and result.out == "" and "--page" in result.err, result


def test_completion_and_manual_know_the_verb(attsvm):
    for kind in ("bash", "zsh", "fish", "man"):
        assert "capacity" in attsvm("completion", kind).out


def test_a_page(attsvm, tmp_path):
    page = tmp_path / "sizes.html"
    result = attsvm("capacity", *SMALL, "--page", page, "--json")
    told = result.json()
    assert result.code == 0 and told["page"] == str(page)
    data = page_of(page)
    assert data["kind"] == "capacity" and data["smallest_d"] == told["smallest_d"]
    assert data["separable"] == told["separable"] and data["command"].startswith("attsvm capacity --n 12 --T 4 --d 4 ")
    predicted = dict(zip(data["prediction"]["d"], data["prediction"]["chance"]))
    assert predicted[4] == told["predicted"] and list(predicted) == sorted(predicted)
    again = attsvm("capacity", *SMALL, "--page", page)
    assert again.code == 2 and "--force" in again.err and again.out == "", again
