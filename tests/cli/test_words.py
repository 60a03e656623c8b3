"""How the program speaks: suggestions, wrapped text, the list of verbs, completions."""

import os
import pty
import re
import subprocess

import pytest


def verbs_of(attsvm):
    return re.findall(r"^  ([a-z]+) ", attsvm().out, re.M)


def test_alone_it_shows_the_verbs(attsvm):
    result = attsvm()
    assert result.code == 0 and result.err == ""
    assert {"solve", "train", "check", "reproduce", "completion"} <= set(verbs_of(attsvm))


@pytest.mark.parametrize("words, meant", [
    (["solv"], "solve"),
    (["generate", "randm", "-o", "x.npz"], "random"),
    (["claims", "dirction"], "direction"),
    (["reproduce", "svm-rang"], "svm-rank"),
    (["train", "x.npz", "-o", "y.npz", "--stpes", 3], "--steps"),
    (["completion", "zhs"], "zsh"),
])
def test_near_words_are_suggested(attsvm, tmp_path, monkeypatch, words, meant):
    monkeypatch.chdir(tmp_path)
    result = attsvm(*words)
    assert result.code == 2 and result.out == "" and len(result.lines()) == 1, result
    assert f"did you mean {meant}?" in result.err
    assert not list(tmp_path.iterdir())


def test_far_words_get_the_whole_list(attsvm):
    result = attsvm("claims", "zzzzzzzzzz")
    assert result.code == 2 and "must be one of separability, capacity-always" in result.err


@pytest.mark.parametrize("verb, options", [
    ("generate", ["random"]), ("solve", ["task.npz"]), ("train", ["task.npz"]), ("path", ["task.npz"]),
    ("report", ["task.npz"]), ("playground", [])])
def test_stdout_is_no_output_file(attsvm, draw, tmp_path, monkeypatch, verb, options):
    draw()
    monkeypatch.chdir(tmp_path)
    result = attsvm(verb, *options, "-o", "-")
    assert result.code == 2 and len(result.lines()) == 1 and "stdout" in result.err, result
    assert [path.name for path in tmp_path.iterdir()] == ["task.npz"]


@pytest.mark.parametrize("verb", ["generate", "train", "path", "claims", "reproduce"])
def test_negative_seeds_are_refused(attsvm, verb):
    result = attsvm(verb, "x", "--seed", -1)
    assert result.code == 2 and len(result.lines()) == 1 and "--seed: -1" in result.err, result


def test_help_and_lists_wrap_at_words(attsvm):
    for verb in verbs_of(attsvm):
        for line in attsvm(verb, "--help").out.splitlines():
            assert len(line) <= 120, f"{verb}: {line}"
    for line in attsvm("reproduce", "list").out.splitlines():
        assert len(line) <= 120, line


def on_terminal(*command):
    """What the program writes to stderr where that is a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen([os.environ["ATTSVM_PROGRAM"], *map(str, command)], stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    text = b""
    while process.poll() is None or not text.endswith(b"\x1b[K"):
        try:
            text += os.read(master, 4096)
        except OSError:  # the other side is closed
            break
    os.close(master)
    assert process.wait() == 0
    return text.decode()


def test_long_verbs_show_share_and_time_left(draw, tmp_path):
    text = on_terminal("train", draw(), "-o", tmp_path / "run.npz", "--steps", "2e5", "--record", "0")
    assert re.search(r" \d+ %  .*step \d+ of 200000.*; \d+ s left", text), text


def test_verify_report_and_demo_show_share_and_time_left(attsvm, draw, tmp_path):
    task, solution = draw("random", "--n", 40, "--T", 20, "--d", 20), tmp_path / "solution.npz"
    assert attsvm("solve", task, "-o", solution).code == 0
    verify = ["verify", task, solution]
    report = ["report", task, "--solution", solution, "-o", tmp_path / "report.html", "--force"]
    demo = ["demo", "--out", tmp_path / "demo"]
    for command, part in [(verify, "the rows of W"), (report, "verifying .*solution.npz"), (demo, "training W")]:
        text = on_terminal(*command)
        assert re.search(rf" \d+ %  {part}.*; (\d+ s|…) left", text), text
        assert text.endswith("\r\x1b[K"), text  # nothing stays on the terminal
        assert on_terminal(*command, "--quiet") == ""


def test_claims_are_counted_by_tasks(attsvm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = attsvm("claims", "separability", "rank", "--tasks", 3).out
    assert re.search(r"^2 claims held on 6 of 6 tasks, ", out, re.M), out
    out = attsvm("claims", "global", "--tasks", 40).out  # not every start ends at the optimal tokens
    held = int(re.search(r"held on +(\d+) of 40", out).group(1))
    if held < 40:
        assert f"1 claim held on {held} of 40 tasks" in out and f"not on every task: global ({held} of 40)" in out
    assert "of 1 claims" not in out


def test_names_of_files_cannot_speak(attsvm, tmp_path):
    """Control characters and line ends in a name reach neither the terminal nor a reader of lines."""
    folder = tmp_path / "\x1b[31ma\nb"
    folder.mkdir()
    task, run, solution, stack = (folder / f"{name}\r.npz" for name in ("task", "run", "solution", "stack"))
    commands = [
        ["generate", "random", "--n", 3, "--d", 8, "--attention", "prompt", "-o", task],
        ["info", task], ["solve", task, "-o", solution], ["info", solution], ["verify", task, solution],
        ["train", task, "--steps", 20, "-o", run], ["check", task], ["check", task, "--run", run],
        ["path", task, "--radius", "1,10", "-o", folder / "path\n.npz"],
        ["stack", task, "--steps", 20, "-o", stack],
        ["report", task, "--solution", solution, "--run", run, "-o", folder / "page\n.html"],
        ["positions", task, "--kind", "sinusoidal", "-o", folder / "placed\n.npz"],
        ["split", task, "--parts", 2, "-o", folder / "parts\n"],
        ["claims", "global", "--tasks", 12, "--seed", 2, "--out", folder / "claims\n"],
        ["reproduce", "single-input", "--runs", 1, "--out", folder / "figures\n"],
        ["solve", task, "--warm-start", solution, "-o", folder / "absent" / "x.npz"],
    ]
    for words in commands:
        result = attsvm(*words)
        assert result.code in ((2,) if "absent" in str(words[-1]) else (0, 3, 4)), result
        for text in (result.out, result.err):
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f]", text), (words[0], text)
            assert "\nb/" not in text, (words[0], text)


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish", "man"])
def test_completions_know_every_option(attsvm, kind):
    text = attsvm("completion", kind).out.replace("\\", "")
    assert attsvm("completion", kind, "--json").json()["kind"] == kind
    for verb in verbs_of(attsvm):
        assert verb in text
        for option in re.findall(r"^  (?:-\w,)?--([a-z-]+)", attsvm(verb, "--help").out, re.M):
            assert re.search(rf"(--|-l ){option}\b", text), f"{verb} --{option}"


def test_bash_completes(attsvm, tmp_path):
    (tmp_path / "attsvm.bash").write_text(attsvm("completion", "bash").out)

    def complete(*words):
        script = (f"source {tmp_path}/attsvm.bash; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
                  "_attsvm; echo ${COMPREPLY[@]}")
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        assert done.stderr == ""
        return done.stdout.split()

    assert complete("attsvm", "so") == ["solve"]
    assert complete("attsvm", "reproduce", "--fo") == ["--format", "--font-size"]
    assert complete("attsvm", "solve", "ta") == []  # files are left to the shell
    assert complete("attsvm", "reproduce", "--format", "p") == ["pdf", "png"]
    assert complete("attsvm", "train", "task.npz", "--param", "") == ["W", "KQ", "p"]
    assert complete("attsvm", "train", "task.npz", "--loss", "log") == ["logistic"]
    assert complete("attsvm", "solve", "task.npz", "--norm", "") == ["fro", "nuc", "spec", "max", "l1"]
    assert complete("attsvm", "train", "task.npz", "--optimizer", "a") == ["adam", "adamw"]


def test_zsh_and_fish_know_values(attsvm):
    assert ":value:(svg pdf png)" in attsvm("completion", "zsh").out
    assert "-x -a 'svg pdf png'" in attsvm("completion", "fish").out


def test_the_manual_page_is_sound(attsvm, tmp_path):
    (tmp_path / "attsvm.1").write_text(attsvm("completion", "man").out)
    done = subprocess.run(["man", "--warnings", "-l", tmp_path / "attsvm.1"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "" and "attsvm reproduce" in done.stdout
