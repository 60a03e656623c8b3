"""What README shows is what the program prints; round-off figures and times may differ."""

import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parents[2]


def shown_sessions(text):
    """(command, output lines) of every `$ attsvm ...` in an indented block."""
    lines = [line[4:] for line in text.splitlines() if line.startswith("    ")]
    starts = [k for k, line in enumerate(lines) if line.startswith("$ attsvm ")]
    for start, end in zip(starts, starts[1:] + [len(lines)]):
        output = []
        for line in lines[start + 1:end]:
            if not line.strip() or line.startswith(("cmake", "make", "pip", "$")):
                break
            output.append(line)
        yield shlex.split(lines[start])[2:], output


def settled(line):
    """Without what depends on rounding or on the clock."""
    return re.sub(r"((gap |violation +)?[0-9.]+e-[0-9]+( s)?|[0-9.]+ s\b)", "#", line)


def test_readme_sessions(attsvm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sessions = list(shown_sessions((ROOT / "README.md").read_text()))
    assert len(sessions) >= 4
    for command, output in sessions:
        result = attsvm(*command)
        assert result.code == 0, result.err
        assert [settled(line) for line in result.out.splitlines()] == [settled(line) for line in output], command


def test_links_between_documents_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
