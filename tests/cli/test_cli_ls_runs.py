"""`paddle-tfm ls runs`, and the table of a sweep's runs, which `run` shows too."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import TINY, call, on_a_terminal
from rich.cells import cell_len
from rich.console import Console

from paddle_tfm.cli.ls.runs_table import RunsTable, chosen
from paddle_tfm.cli.run.progress import can_redraw
from paddle_tfm.sweep.overview import Overview, SweepRuns
from paddle_tfm.sweep.standing import STATES, Standing

pytestmark = pytest.mark.reliability

SWEEP = (
    *TINY,
    "train.steps=240",  # some looks at each run, on a fast machine too
    "evaluate.every=80",
    "seeds=[1, 2]",
    "variants={pre: {}, post: {model.placement: post}}",
)
ERASED = re.compile(r"\r?(?:\x1b\[1A|\x1b\[2K)+")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def as_printed(text):
    """Without escapes; what is drawn again begins a line."""
    return ESCAPES.sub("", ERASED.sub("\n", text.replace("\r\n", "\n")))


def test_a_sweep_that_is_killed_is_watched_and_resumed(tmp_path):
    out = tmp_path / "out"
    sweep = ["run", "reverse", *SWEEP, "--out", out, "--workers", 1]
    status, text = on_a_terminal(*sweep, when=lambda text: (out / "post/seed-1/checkpoints/last/state.json").exists())
    assert status == -signal.SIGKILL
    assert "left of all" in text and "After 1 of 2" not in text

    done = call("ls", "runs", out)
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    states = [line.split()[:2] for line in lines[1:5]]
    assert states == [
        ["pre/seed-1", "done"],
        ["post/seed-1", "killed"],
        ["pre/seed-2", "waiting"],
        ["post/seed-2", "waiting"],
    ]
    assert lines[5] == "1 of 4 done · 1 killed · 2 waiting"
    assert re.match(r"post/seed-1: process \d+ on .*, which trained it since .* UTC, is gone$", lines[6])
    assert lines[8].startswith("paddle-tfm run reverse ") and lines[8].endswith(f" --out {out} --resume")
    data = json.loads(call("ls", "runs", out, "--json").out)
    assert (data["finished"], data["counts"]) == (False, {"done": 1, "killed": 1, "waiting": 2})
    assert data["sweeps"][0]["continue_with"] == lines[8]

    watch = [sys.executable, "-m", "paddle_tfm", "ls", "runs", str(out), "--follow"]
    watching = subprocess.Popen(watch, stdout=subprocess.PIPE, text=True)
    status, text = on_a_terminal(*sweep, "--resume")
    assert status == 0
    tables = re.findall(r"^run .*?^\d of 4 done.*?$", as_printed(text), re.MULTILINE | re.DOTALL)
    assert tables and max(cell_len(line) for table in tables for line in table.splitlines()) <= 80
    running = [table for table in tables if re.search(r" \d+/240 ", table) and "· 1 running" in table]
    assert running  # of which run depends on how fast they are
    assert all(re.search(r"^\S+ +next$", table, re.MULTILINE) for table in running if "waiting" in table)
    plain = " ".join(as_printed(text).split())
    assert plain.count("After 1 of 2 seeds (interim: an early look is no test): ") == 1 and "After 2 of 2" not in plain

    told, _ = watching.communicate(timeout=60)
    assert watching.returncode == 0
    assert "pre/seed-1: done, exact match" in told and "post/seed-2: done, exact match" in told
    verdict = json.loads(call("ls", "runs", out, "--json").out)["sweeps"][0]["verdict"]
    for text in (told, call("compare", out, "--out", tmp_path / "report").out):
        assert verdict in " ".join(text.split())
    assert told.splitlines()[-1] == f"report  paddle-tfm compare {out}"


def test_where_nothing_can_be_redrawn_there_are_lines(tmp_path, monkeypatch):
    """A terminal that cannot, and a CI's log."""
    tiny = [*TINY, "train.steps=2", "--workers", 1, "--out", tmp_path / "out", "--cell", "default/seed-1"]
    status, text = on_a_terminal("run", "reverse", *tiny, columns=200, TERM="dumb")
    assert status == 0 and "\x1b[2K" not in text and "\x1b[1A" not in text
    lines = [line for line in as_printed(text).splitlines() if line]
    assert lines[0].startswith("1/1 default/seed-1  ") and lines[1].startswith(
        "  default/seed-1  step      2  valid  loss "
    )
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    assert can_redraw(Console(force_terminal=True)) and not can_redraw(Console(force_terminal=False))
    monkeypatch.setenv("CI", "true")
    assert not can_redraw(Console(force_terminal=True))


def test_a_finished_sweep_says_its_verdict_and_ends(trained):
    status, text = on_a_terminal("ls", "runs", trained.out, "--follow")
    assert status == 0 and text.rstrip().endswith(f"report  paddle-tfm compare {trained.out}")
    assert "is the only variant here" in " ".join(text.split())
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h")  # the cursor is back
    record = json.loads(call("ls", "runs", trained.folder, "--json").out)["runs"][0]
    results = json.loads((trained.folder / "results.json").read_text("utf-8"))
    assert (record["state"], record["score"]) == ("done", results["test"]["exact_match"])
    assert call("ls", "runs", trained.folder, "--csv").out.splitlines()[0].startswith("run,folder,state,step,")


def test_ctrl_c_ends_the_following_alone(tmp_path):
    begun = tmp_path / "out/pre/seed-1"
    begun.mkdir(parents=True)
    (begun / "identity.json").write_text("{}")
    (begun / "recipe.yaml").write_text("train: {steps: 5}\n")
    for number, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        status, text = on_a_terminal(
            "ls", "runs", tmp_path, "--follow", send=number, when=lambda text: "Nothing is trained" in text
        )
        assert status == expected and "Traceback" not in text
        assert text.count("\x1b[?25l") == text.count("\x1b[?25h")  # the cursor is back
    assert sorted(path.name for path in begun.iterdir()) == ["identity.json", "recipe.yaml"]


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["nowhere"], "nowhere: there is no such folder"),
        (["--follow"], "runs: there is no such folder"),
        (["."], ".: no run is here; start one: paddle-tfm run quickstart"),
        ([".", "--follow"], ".: no run is here; start one: paddle-tfm run quickstart"),
        ([".", "--follow", "--csv"], "--follow updates a table for people, --csv is for programs; use one of the two"),
        ([".", "--fetch"], "--fetch goes with `ls data`, and not with `ls runs`; leave it out"),
        ([".", "x=1"], "`ls runs` takes no settings, but 'x=1' was given; `ls data NAME` does"),
    ],
)
def test_what_cannot_be_listed_is_said_in_one_sentence(arguments, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call("ls", "runs", *arguments)
    assert done.status == 2 and done.err.startswith(f"Error: {sentence}") and done.err.count("\n") == 1


def test_without_a_folder_there_may_be_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call("ls", "runs")
    assert (done.status, done.out) == (0, "No runs in runs. Start one: paddle-tfm run quickstart\n")
    assert json.loads(call("ls", "runs", "--json").out)["runs"] == []
    assert call("ls", "runs", "--csv").status == 0


def test_half_a_run_is_unreadable_and_the_others_are_listed(trained, tmp_path):
    for seed in (1, 2):
        shutil.copytree(trained.folder, tmp_path / f"out/default/seed-{seed}")
    (tmp_path / "out/default/seed-1/results.json").write_text('{"test"')
    done = call("ls", "runs", tmp_path / "out")
    assert done.status == 0 and [line.split()[:2] for line in done.out.splitlines()[1:3]] == [
        ["default/seed-1", "unreadable"],
        ["default/seed-2", "done"],
    ]
    assert "results.json: damaged" in done.out and "Traceback" not in done.err
    done = call("ls", "runs", tmp_path / "out", "--follow")  # it ends: nothing will change
    assert done.status == 2 and "results.json: damaged" in done.err
    assert "default/seed-2: done" in done.out


def many(count, states):
    """Runs in the given states, over and over; what is long has a long name."""
    names = [f"variant-{'of-a-grid-' * (i % 4)}{i % 20}/seed-{i // 20}" for i in range(count)]
    facts = {"step": 1234567, "steps": 2345678, "loss": 2.5, "tokens_per_second": 123456.0, "seconds_left": 4e5}
    shared = {"best": "exact_match", "valid": {"exact_match": 0.5}, "scores": {"exact_match": 0.25}, **facts}
    return [Standing(name, Path("out", name), states[i % len(states)], **shared) for i, name in enumerate(names)]


@pytest.mark.parametrize("width, height", [(80, 23), (120, 39), (60, 12)])
@pytest.mark.parametrize("count", [1, 18, 200])
def test_the_table_fits_the_screen(width, height, count):
    overview = Overview(Path("out"), [SweepRuns(Path("out"), many(count, STATES))], 4)
    lines = RunsTable(overview, "out", [("word " * 30, "")]).lines(width, height)
    texts = ["".join(text for text, _ in line) for line in lines]
    assert len(texts) <= height and max(map(cell_len, texts)) <= width


def test_of_many_runs_the_interesting_ones_are_shown():
    states = ["done"] * 150 + ["running", "done", "killed", "running"] + ["waiting"] * 46
    runs = many(200, states)
    shown = chosen(runs, 10)
    assert [runs.index(run) for run in shown] == [147, 148, 149, 150, 151, 152, 153, 154, 155, 156]
    assert [runs.index(run) for run in chosen(runs, 4)] == [150, 152, 153, 154]
    overview = Overview(Path("out"), [SweepRuns(Path("out"), runs)], 2)
    texts = ["".join(text for text, _ in line) for line in RunsTable(overview).lines(100, 13)]
    hidden = re.fullmatch(r"not shown: (\d+) done, (\d+) waiting", texts[-2])
    assert int(hidden[1]) + int(hidden[2]) == 200 - 10
    assert texts[-1].startswith("151 of 200 done · 2 running · 1 killed · 46 waiting · ")
