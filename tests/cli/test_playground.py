"""attsvm playground: the file that it writes, and what it refuses. tests/web has the page itself."""

import re


def test_one_file_with_nothing_outside(attsvm, tmp_path):
    out = tmp_path / "playground.html"
    result = attsvm("playground", "-o", out, "--json")
    assert result.code == 0, result.err
    said = result.json()
    assert said["command"] == "playground" and said["file"] == str(out) and said["bytes"] == out.stat().st_size < 3e6
    html = out.read_text(encoding="ascii")
    assert html.startswith("<!doctype html>") and "<!--" not in html
    assert not re.search("https?:", html.replace("http://www.w3.org/2000/svg", ""))
    assert attsvm("playground", "-o", tmp_path / "again.html").out == f"{tmp_path}/again.html: a page to open in a browser, {said['bytes'] / 1000:.0f} kB\n"
    assert (tmp_path / "again.html").read_bytes() == out.read_bytes()


def test_refusals(attsvm, tmp_path):
    out = tmp_path / "playground.html"
    out.write_text("mine")
    result = attsvm("playground", "-o", out)
    assert result.code == 2 and result.out == "" and len(result.lines()) == 1 and str(out) in result.err, result
    assert out.read_text() == "mine"
    assert attsvm("playground", "-o", out, "--force").code == 0 and out.stat().st_size > 100_000
    nowhere = attsvm("playground", "-o", tmp_path / "nowhere" / "playground.html")
    assert nowhere.code == 2 and len(nowhere.lines()) == 1 and "nowhere" in nowhere.err, nowhere
    unnamed = attsvm("playground")
    assert unnamed.code == 2 and len(unnamed.lines()) == 1 and "--out" in unnamed.err, unnamed


def test_the_demo_writes_one_and_links_to_it(attsvm, tmp_path):
    result = attsvm("demo", "--seed", 3, "--out", tmp_path / "demo", "--json")
    assert result.code == 0, result.err
    assert result.json()["playground"] == str(tmp_path / "demo" / "playground.html")
    assert (tmp_path / "demo" / "playground.html").stat().st_size > 100_000
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert '"playground":"playground.html#draw=random&n=6&T=8&d=10&seed=3"' in page
