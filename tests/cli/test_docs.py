"""The program prints what documents show, up to rounding and times. Links are not broken."""

import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import documents  # noqa: E402

@pytest.mark.parametrize("page", documents.GUIDES, ids=documents.name_of)
def test_sessions(page, attsvm, tmp_path, monkeypatch):
    """Commands in order, with the files that Python without our package writes before them."""
    monkeypatch.chdir(tmp_path)
    names, known = {}, True

    def run(words):
        done = attsvm(*words)
        return done.code, done.out, done.err

    for language, text in documents.blocks(page):
        if language == "pycon":
            known = False  # from here on, code may need what the package made: tests/python runs it all
        elif language == "python" and known:
            documents.run_python(text, names)
        elif language == "console" and known:
            documents.run_console(text, run, documents.name_of(page))


def test_there_are_sessions():
    shown = [command for page in documents.GUIDES for language, text in documents.blocks(page) if language == "console"
             for command, _ in documents.sessions(text)]
    assert len(shown) >= 20
    for verb in ("generate", "info", "solve", "verify", "train", "check", "path", "report", "reproduce", "sweep"):
        assert any(command.startswith(f"attsvm {verb} ") for command in shown), verb


def test_every_verb_is_in_the_reference(attsvm):
    verbs = re.findall(r"^  ([a-z]+)  ", attsvm("--help").out.split("Subcommands:")[1].split("Examples:")[0], re.M)
    text = (documents.ROOT / "docs/command-line.md").read_text()
    assert len(verbs) >= 12
    for verb in verbs:
        assert f"| `{verb}" in text, verb


def test_links_lead_somewhere():
    for page in documents.PAGES:
        for target, path, anchor in documents.links(page):
            assert path.exists(), f"{documents.name_of(page)}: {target}"
            if anchor:
                assert anchor in documents.anchors(path), f"{documents.name_of(page)}: {target}"


def test_the_index_names_every_page():
    index = documents.ROOT / "docs/index.md"
    named = {path.resolve() for _, path, _ in documents.links(index)}
    for page in (documents.ROOT / "docs").rglob("*.md"):
        assert page == index or page.resolve() in named, page


def test_the_site_names_every_page():
    """And its pages link to nothing outside of it: mkdocs is strict."""
    docs = documents.ROOT / "docs"
    text = (documents.ROOT / "mkdocs.yml").read_text()
    for page in docs.rglob("*.md"):
        assert f": {page.relative_to(docs)}\n" in text, page
        for target, path, _ in documents.links(page):
            assert path.resolve().is_relative_to(docs), f"{documents.name_of(page)}: {target}"


def test_lines_of_prose_fit_a_screen():
    long = [f"{documents.name_of(page)}:{number}" for page in documents.PAGES for number, line in documents.prose(page)
            if len(line) > 120]
    assert not long


def test_plain_english():
    """`one per query`, not `one a query`."""
    nouns = "query|row|step|run|thread|token|setting|radius|problem|round|noun|solver|measurement|batch|position|line"
    pattern = re.compile(rf"\b(one|an?|[0-9.,]+ ?[µmun]?s|seconds?|steps?|rows?|entry|line|file|commit) an? ({nouns})\b")
    for page in documents.PAGES:
        for number, line in documents.prose(page):
            assert not pattern.search(line), f"{documents.name_of(page)}:{number}: {line}"


def test_readme_fits_a_screen():
    assert len((documents.ROOT / "README.md").read_text().splitlines()) <= 75
