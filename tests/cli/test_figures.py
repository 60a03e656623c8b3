"""Figures for papers: formats, sizes, single panels."""

import re
import struct
import zlib

import pytest


@pytest.fixture
def draw(attsvm, tmp_path):
    """draw("--width", 84): the folder of one experiment's figures."""

    def run(*options):
        result = attsvm("reproduce", "joint-training", "--out", tmp_path, "--json", *options)
        assert result.code == 0, result.err
        assert all((tmp_path / "joint-training" / file.split("/")[-1]).exists()
                   for file in result.json()["experiments"][0]["files"])
        return tmp_path / "joint-training"

    return run


def names(folder):
    return sorted(path.name for path in folder.glob("figure*"))


def width_of(svg):
    return int(re.search(r'<svg\s+width="(\d+)"', svg.read_text()).group(1))


def font_sizes(pdf):
    """Of all texts of a PDF file, in points."""
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf.read_bytes(), re.S)
    pages = b"".join(zlib.decompress(one) for one in streams if one[:1] == b"\x78")
    return {round(float(size), 2) for size in re.findall(rb"BT\s+([\d.]+) 0 0 -?\1 ", pages)}


@pytest.mark.parametrize("points", [9, 7])
def test_text_of_pdf_files_has_the_size_asked_for(draw, points):
    sizes = font_sizes(draw("--format", "pdf", "--font-size", points) / "figure.pdf")
    assert points in sizes and max(sizes) == round(15 / 12 * points, 2), sizes  # numbers on axes, the title


def test_formats(draw):
    assert names(draw()) == ["figure.gp", "figure.svg"]
    folder = draw("--format", "pdf")
    assert names(folder) == ["figure.gp", "figure.pdf", "figure.svg"]
    pdf = (folder / "figure.pdf").read_bytes()
    assert pdf.startswith(b"%PDF") and pdf.endswith(b"%%EOF\n")
    assert (draw("--format", "pdf") / "figure.pdf").read_bytes() == pdf  # no time of day in it
    folder = draw("--format", "png", "--width", 100)
    assert names(folder) == ["figure.gp", "figure.png", "figure.svg"]
    png = (folder / "figure.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert abs(struct.unpack(">I", png[16:20])[0] - 100 / 25.4 * 300) < 5  # 300 dots per inch


def test_width_and_font_size(draw):
    wide = draw()
    usual = width_of(wide / "figure.svg")
    narrow = draw("--width", 84, "--font-size", 7)
    assert abs(width_of(narrow / "figure.svg") - 84 / 25.4 * 96) < 2 < usual
    assert "sans-serif,9.333'" in (narrow / "figure.gp").read_text()  # 7 points in pixels


def test_no_title_leaves_panels_their_own(draw):
    with_title = (draw() / "figure.svg").read_text()
    without = (draw("--no-title") / "figure.svg").read_text()
    for words, stays in (("Head and prompt trained together", False), ("Paths of v", False),
                         ("(a) All inputs are support vectors of v", True)):
        assert words in with_title and (words in without) == stays, words


def test_single_panels(draw):
    folder = draw("--panels", "--no-title")
    assert names(folder) == ["figure-a.gp", "figure-a.svg", "figure-b.gp", "figure-b.svg", "figure.gp", "figure.svg"]
    svg = (folder / "figure-b.svg").read_text()
    assert "relaxed p-SVM" in svg and "(a)" not in svg and "third input" not in svg
    assert names(draw()) == ["figure.gp", "figure.svg"]  # panels of an earlier call would go stale


def test_data_do_not_depend_on_the_drawing(draw):
    plain = [(draw() / name).read_bytes() for name in ("data.csv", "data.json")]
    folder = draw("--width", 60, "--format", "pdf", "--no-title")
    assert [(folder / name).read_bytes() for name in ("data.csv", "data.json")] == plain


def test_paths_show_their_tokens(attsvm, tmp_path):
    assert attsvm("reproduce", "gd-paths", "--out", tmp_path).code == 0
    svg = (tmp_path / "gd-paths" / "figure.svg").read_text()
    for words in ("tokens of input 1", "selected token of input 2"):
        assert words in svg


@pytest.mark.parametrize("name", ["losses", "svm-rank", "gd-paths", "single-input", "joint-training"])
def test_no_two_curves_of_a_panel_look_alike_however_few_runs(attsvm, tmp_path, name):
    assert attsvm("reproduce", name, "--runs", 10, "--out", tmp_path).code == 0
    script = (tmp_path / name / "figure.gp").read_text()
    panels = re.findall(r"^plot ((?:.*\\\n)*.*)", script, re.M)
    assert len(panels) > 1
    for panel in panels:
        looks = re.findall(r" with (.*?)(?:, \\)?$", panel, re.M)
        assert len(looks) > 1 and len(set(looks)) == len(looks), looks


def test_experiments_name_their_paper_and_figure(attsvm):
    for one in attsvm("reproduce", "list", "--json").json()["experiments"]:
        if not one["published"]:
            continue
        paper = one["paper"].split(":")[0]
        assert re.match(r"(Transformers as Support Vector Machines \(arXiv 2308.16898\)|Max-Margin Token Selection in "
                        r"Attention Mechanism \(arXiv 2306.13596\)), the (figures?|section) ", paper), paper


@pytest.mark.parametrize("options, words", [
    (["--format", "gif"], ["--format", "gif"]), (["--width", 0], ["--width"]), (["--width", "wide"], ["--width"]),
    (["--font-size", 1], ["--font-size"]), (["--out", "-"], ["--out", "stdout"])])
def test_what_cannot_be_drawn(attsvm, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    result = attsvm("reproduce", "joint-training", *options)
    assert result.code == 2 and result.out == "" and len(result.lines()) == 1, result
    assert all(word in result.err for word in words), result.err
    assert not list(tmp_path.iterdir())
