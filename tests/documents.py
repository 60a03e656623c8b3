"""What documents show: fenced blocks that tests run, sessions among them, links, headings and lines of prose."""

import contextlib
import io
import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
GUIDES = [ROOT / "README.md", *(ROOT / "docs" / name for name in ("tutorial.md", "command-line.md")),
          *sorted((ROOT / "docs/howto").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def name_of(page):
    return str(page.relative_to(ROOT))


def blocks(page):
    """(language, text) of every fenced block, in order."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


def sessions(text):
    """(command, lines of output) of every `$ ...` of a console block."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def settled(line):
    """Without what depends on rounding, on the clock or on the size of the page's program."""
    if re.fullmatch(r" +\d+( +([0-9.e+-]+|-)){2}", line):  # correlations of check, which follow rounding noise
        return line.split()[0]
    line = re.sub(r"gap 0\b", "gap #", line)
    return re.sub(r"((violation +)?[0-9.]+e[-+][0-9]+( s)?|\b[0-9.]+ s\b|\b[0-9]+ kB)", "#", line)


def agree(shown, printed):
    """Whether lines are those shown. `...` stands for any lines; at the end of a line for the rest of it."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(agree(shown[1:], printed[k:]) for k in range(len(printed) + 1))
    if not printed:
        return False
    if shown[0].endswith("..."):
        return printed[0].startswith(shown[0][:-3]) and agree(shown[1:], printed[1:])
    return settled(shown[0]) == settled(printed[0]) and agree(shown[1:], printed[1:])


def run_console(text, run, where):
    """run(words) gives code, stdout and stderr of attsvm with these words. Returns the number of commands."""
    code, count = 0, 0
    for command, shown in sessions(text):
        if command == "echo $?":
            assert shown == [str(code)], f"{where}: exit code {code}"
            continue
        words = shlex.split(command)
        assert words[0] == "attsvm", f"{where}: {command}"
        code, out, err = run(words[1:])
        assert agree(shown, out.splitlines()), f"{where}: {command}\n{out}{err}"
        count += 1
    return count


def run_python(text, names):
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, "document", "exec"), names)


def anchors(page):
    """What GitHub and the site make of the headings."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = [re.sub(r"[*`_]|\[([^]]*)\]\([^)]*\)", r"\1", line.lstrip("#")) for line in text.splitlines()
              if re.match(r"#{1,6} ", line)]
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).strip().replace(" ", "-") for title in titles}


def links(page):
    """(path, anchor) of every link within the project."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"`[^`\n]*`", "", text)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            yield target, page if not path else (page.parent / path), anchor


def prose(page):
    """(number, line) outside of code, tables and pictures."""
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    ") and not line.lstrip().startswith(("|", "![")):
            yield number, line
