"""Every verb does what its help says; what is the user's to mend is one sentence and exit status 2."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from functools import partial

import pytest
from command_line import TINY, TINY_TASK, call, in_terminal
from visualdl import LogReader

import paddle_tfm
from paddle_tfm.cli import VERBS, _interruptible
from paddle_tfm.errors import UserError
from paddle_tfm.recipe import loading as recipe
from paddle_tfm.recipe.reading import shipped
from paddle_tfm.testing.same_runs import differences

COMMAND = [sys.executable, "-m", "paddle_tfm"]
ESCAPE = "\x1b["


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# -------------------------------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb):
    done = call(verb, "--help")
    assert done.status == 0
    assert "Example" in done.out
    assert f"paddle-tfm {verb}" in done.out


def test_help_names_every_verb():
    listing = call("--help").out
    assert all(re.search(rf"^  {verb} +{re.escape(text[:30])}", listing, re.M) for verb, text in VERBS.items())
    assert call("--version").out.startswith("paddle-tfm, version 0.")


def test_help_of_a_recipe_says_what_it_compares_and_how_long_it_takes():
    message = call("run", "quickstart", "--help").out
    assert "Compares 5 variants: pre-norm, pointer, rms, post-warm-up, post-norm" in message
    assert "Runs: 15 (3 seeds a variant)" in message
    assert f"Takes: {recipe.load('quickstart').data['duration']}" in message
    every = call("run", "--help").out
    assert all(name in every for name in shipped())
    assert (options := message.split("\nOptions:\n")[1]).count("\n  --") > 15 and options in every


@pytest.mark.parametrize("text", ["seeds: 3", "variants: [a]", "grid: 3", "variants: {a: 3}"])
def test_help_of_a_recipe_with_problems_is_still_help(tmp_path, text):
    (tmp_path / "bad.yaml").write_text(f"base: base.yaml\n{text}\n")
    done = call("run", "bad.yaml", "--help")
    assert (done.status, "Usage: paddle-tfm run bad.yaml" in done.out) == (0, True)


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["rn"], "unknown command 'rn'; did you mean 'run'? Known: board, "),
        (["run", "revers"], "unknown recipe 'revers'; did you mean 'reverse'? Known: answer-by-copying, base, "),
        (["check", "absent.yaml"], "absent.yaml: no such file; shipped recipes: answer-by-copying, base, "),
        (["show", "broken.yaml"], "broken.yaml line 3: not valid YAML: "),
        (["ls", "components", "--plugin", "broken.py"], "--plugin broken.py, line 2: ZeroDivisionError: division by"),
        (["ls", "components", "nrm"], "unknown kind 'nrm'; did you mean 'norm'? Known: "),
        (["run", "reverse", "--device", "cpu:1"], "--device cpu:1: must be cpu, gpu or gpu:N"),
        (["run", "reverse", "--device", "gpu:77"], "--device gpu:77"),
        (["evaluate", "nowhere"], "nowhere: no run is here; `paddle-tfm ls runs` shows where runs are"),
        (["translate", "nowhere", "1 2"], "nowhere: no run is here"),
        (["compare", "nowhere"], "nowhere: no such folder; `compare` takes the folders of finished runs"),
        (["board", "nowhere"], "nowhere: no curves are here; train first: paddle-tfm run quickstart"),
        (["cp", "reverse", "no/such/folder.yaml"], "no/such: no such folder"),
        (["run", "reverse", *TINY, "--out", "a_file"], "a_file cannot be written: File exists"),
        (["ls", "tables"], "unknown list 'tables'. Known: components, data, plugins, recipes, runs"),
        (["ls", "norms"], "'norms' cannot be listed; did you mean `paddle-tfm ls components norm`?"),
        (["ls", "recipes", "norm"], "`ls recipes` takes no name, but 'norm' was given; `ls components` takes a kind"),
        (["ls", "--colour"], "No such option"),
        (["completion", "tcsh"], "Invalid value for "),
        (["cp"], "Missing argument 'RECIPE'"),
    ],
)  # fmt: skip
def test_what_the_user_can_mend_is_one_sentence_and_exit_status_2(arguments, message, tmp_path):
    (tmp_path / "broken.yaml").write_text("base: base.yaml\na: [\n")
    (tmp_path / "broken.py").write_text("x = 1\nx / 0\n")
    (tmp_path / "a_file").write_text("")
    done = call(*arguments)
    assert done.status == 2
    (sentence,) = re.findall(r"^Error: ((?:.|\n)*)", done.err, re.M)
    assert sentence.startswith(message)
    assert "Traceback" not in done.err
    assert not done.out
    assert not (tmp_path / "runs").exists()


# ---------------------------------------------------------------------------------------------------------------- run


def test_run_says_what_it_did_and_where_it_is(trained):
    lines = trained.done.out
    assert lines.startswith("reverse: 1 run\n")
    assert re.search(r"^default  ", lines, re.MULTILINE)
    for name, file in (("figure", "comparison.png"), ("report", "comparison.html")):
        assert f"{name}  {trained.out / file}\n" in lines
    assert f"curves  paddle-tfm board {trained.out}\n" in lines
    assert "wrong:" in lines
    assert "1/1 default/seed-1" in trained.done.err
    assert "80 training examples, 4 steps" in trained.done.err
    assert "step      4  valid  loss" in trained.done.err
    assert ESCAPE not in lines + trained.done.err


def test_a_run_from_python_shows_what_the_command_shows(capsys):
    paddle_tfm.run("reverse", TINY)
    shown = capsys.readouterr()
    assert shown.out == "" and re.search(
        r"^1/1 default/seed-1  .*\n.*step      2  valid  loss .*\n.*step      4 ", shown.err
    )
    paddle_tfm.run("reverse", TINY, resume=True, progress=False)
    assert capsys.readouterr().err == ""


def test_run_leaves_the_files_of_the_design(trained):
    output = {str(path.relative_to(trained.folder)) for path in trained.folder.rglob("*") if path.is_file()}
    curves = {name for name in output if name.startswith("vdl/")}
    assert len(curves) == 1
    files = ("model.safetensors", "state.json", "manifest.json")
    assert output - curves == {
        *(
            "recipe.yaml",
            "identity.json",
            "about.json",
            "metrics.jsonl",
            "timings.jsonl",
            "predictions.tsv",
            "results.json",
            "manifest.json",
        ),
        *("codec/source/vocabulary.json", "codec/target/vocabulary.json"),
        *(f"checkpoints/{which}/{file}" for which in ("best", "last") for file in files),
        "checkpoints/last/optimizer.safetensors",
    }
    assert {path.name for path in trained.out.iterdir() if path.is_file()} == {
        *("command.json", "comparison.json", "comparison.html", "comparison.png")
    }
    rows = [json.loads(line) for line in (trained.folder / "metrics.jsonl").read_text().splitlines()]
    assert [(row["step"], "evaluation" in row) for row in rows] == [
        *((1, False), (2, False), (2, True), (3, False), (4, False), (4, True))
    ]
    assert len((trained.folder / "predictions.tsv").read_text().splitlines()) == 7
    (run,) = recipe.load(str(trained.folder / "recipe.yaml")).runs()
    assert (run.variant, run.seed, run.settings.model.d_model) == ("default", 1, 16)
    results = json.loads((trained.folder / "results.json").read_text())
    assert {"exact_match": "%", "token_accuracy": "%"}.items() <= results["units"].items()
    assert results["units"].keys() == results["directions"].keys()


def curves(folder) -> dict[str, list[int]]:
    """tag → steps, as VisualDL reads the newest file of a folder."""
    (file,) = (folder / "vdl").iterdir()
    reader = LogReader(file_path=str(file))
    return {tag: [row.id for row in reader.get_data("scalar", tag)] for tag in reader.get_tags()["scalar"]}


def test_curves_are_there_for_visualdl(trained):
    output = curves(trained.folder)
    assert {output[f"train/{name}"] == [1, 2, 3, 4] for name in ("loss", "learning_rate", "gradient_norm")} == {True}
    assert output["valid/exact_match"] == output["valid/loss"] == [2, 4]
    assert output["test/token_accuracy"] == [4]
    (file,) = (trained.folder / "vdl").iterdir()
    reader = LogReader(file_path=str(file))
    (row,) = [row for row in reader.get_data("scalar", "train/loss") if row.id == 3]
    rows = [json.loads(line) for line in (trained.folder / "metrics.jsonl").read_text().splitlines()]
    assert row.value == pytest.approx(next(row["loss"] for row in rows if row["step"] == 3), rel=1e-6)
    assert "sample/0" in reader.get_tags()["text"]


def test_a_second_run_needs_resume_and_resume_keeps_what_is_finished(trained, tmp_path):
    shutil.copytree(trained.out, tmp_path / "again")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "again" / "default").rglob("*")}
    done = call("run", "reverse", *TINY, "--out", "again")
    assert done.status == 2
    assert done.err == "Error: again holds runs of this recipe already; add --resume to continue them, or --out DIR " \
                       "for another place (in Python resume=True, or out=DIR)\n"  # fmt: skip
    done = call("run", "reverse", *TINY, "--out", "again", "--resume")
    assert done.status == 0
    assert "default/seed-1 is finished already" in done.err
    assert re.search(r"^default  ", done.out, re.MULTILINE)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "again" / "default").rglob("*")}


def test_a_changed_recipe_is_not_resumed(trained, tmp_path):
    shutil.copytree(trained.out, tmp_path / "again")
    (tmp_path / "again" / "default" / "seed-1" / "results.json").unlink()
    done = call("run", "reverse", *TINY, "train.clip_norm=2.0", "--out", "again", "--resume")
    assert done.status == 2
    assert (
        "again/default/seed-1 cannot be resumed: recipe changed: train.clip_norm was 1.0 and is 2.0. Undo" in done.err
    )


# ----------------------------------------------------------------------------------------------------- interruptions

SIGNALLER = """
import os, signal
from paddle_tfm import hookimpl
STEP, NUMBER = os.environ["SIGNAL_AT"].split()

@hookimpl
def on_step_end(run, step):
    if step == int(STEP):
        os.kill(os.getpid(), getattr(signal, NUMBER))
"""


@pytest.mark.reliability
def test_a_full_disk_is_said_with_the_command_that_continues():
    """No file may grow beyond 6000 bytes, and so no weights can be saved."""
    words = ["run", "reverse", *TINY, "seeds=[1, 2]", "--out=out", "--workers=2"]
    full = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (6000, 6000))
    bytecode = {"PYTHONDONTWRITEBYTECODE": "1"}  # of which half would be written, too
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, preexec_fn=full, env=os.environ | bytecode
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    where = "out/default/seed-[12]/checkpoints/best: the checkpoint"
    assert re.match(rf"Error: {where}.*File too large.*\. Continue with: paddle-tfm run reverse .* --resume$", error)


FILE_NOT_THERE = """
from paddle_tfm import hookimpl
from paddle_tfm.protocols import Schedule

class Rates(Schedule):
    def __call__(self, step):
        return 0.1 if step < 3 else float(open("rates.txt").read())

@hookimpl
def register_schedules():
    return {"rates": Rates}
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_that_a_plugin_does_not_find_is_no_fault_of_the_machine(workers, tmp_path):
    """The command that continues would fail in the same place."""
    (tmp_path / "rates.py").write_text(FILE_NOT_THERE)
    words = ["train.schedule=rates", "seeds=[1, 2]", "--plugin=rates.py", f"--workers={workers}"]
    done = call("run", "reverse", *TINY, *words)
    assert done.status == 2 and "rates.txt: No such file or directory" in done.err
    assert "--resume" not in done.err


INTERRUPTED_IMPORT = """
import atexit, os, signal, sys
atexit.register(os.kill, os.getpid(), signal.SIGINT)
class Interrupted:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                raise {"ImportError": ImportError, "RuntimeError": RuntimeError}[sys.argv[2]]("initialization failed")
sys.meta_path.insert(0, Interrupted())
from paddle_tfm.cli import main
main(["run", "reverse", "--out=out"])
"""


@pytest.mark.parametrize(
    "where", [("paddle.base.libpaddle", "ImportError"), ("paddle_tfm.recipe.expansion", "RuntimeError")]
)
def test_ctrl_c_within_an_import_is_no_failure_of_it(where):
    """A C extension makes an ImportError of it, and a class that is being made a RuntimeError. A further Ctrl-C comes
    while the process ends, and stops nothing."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT, *where], capture_output=True, text=True)
    assert (done.returncode, done.stderr.split()) == (130, ["Interrupted."])


def test_a_ctrl_c_that_was_handled_hides_no_later_error():
    with pytest.raises(UserError, match="something else"), _interruptible():
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        raise UserError("something else")


@pytest.mark.parametrize(("number", "at"), [("SIGINT", 1), ("SIGTERM", 2)])
def test_an_interrupted_run_says_how_to_go_on_and_goes_on_exactly(number, at, trained, tmp_path, monkeypatch):
    (tmp_path / "a plugin.py").write_text(SIGNALLER)
    monkeypatch.setenv("SIGNAL_AT", f"{at} {number}")
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    done = call("run", "reverse", *TINY, "--out", "an out", "--plugin", "a plugin.py", "--device", "cpu", "--strict")
    assert done.status == 130
    assert "Traceback" not in done.err
    assert "Stopping after this step, with a checkpoint …" in done.err
    folder = tmp_path / "an out" / "default" / "seed-1"
    assert json.loads((folder / "checkpoints" / "last" / "state.json").read_text())["step"] == at
    assert not (folder / "results.json").exists()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers

    (again,) = re.findall(r"^default/seed-1 is saved\. Continue with: paddle-tfm (.*)$", done.err, re.M)
    assert {"--out=an out", "--plugin=a plugin.py", "--device=cpu", "--strict"} <= set(shlex.split(again))
    assert f"stopped at {at}" in call("ls", "runs", "an out").out
    done = call(*shlex.split(again))
    assert done.status == 0, done.err
    assert f"resumed at step {at}" in done.err
    assert differences(trained.folder, folder) == []
    assert curves(folder) == curves(trained.folder)


# ------------------------------------------------------------------------------------------------ what is done to runs


def test_a_folder_that_holds_one_run_stands_for_it(trained, tmp_path):
    shutil.copytree(trained.out, tmp_path / "out")
    assert call("evaluate", "out").status == 0
    shutil.copytree(trained.folder, tmp_path / "out" / "default" / "seed-2")
    done = call("evaluate", "out")
    assert (done.status, "out holds 2 runs; choose one:\n  out/default/seed-1\n" in done.err) == (2, True)


def test_ls_recipes_components_and_plugins():
    listing = call("ls").out
    assert re.search(r"^reverse +Reverse a sequence of up to 12 numbers +about 1 minute", listing, re.M)
    norms = call("ls", "components", "norm").out
    assert re.search(r"^rms +Division by the root mean square", norms, re.M)
    assert "rotary" not in norms
    everything = call("ls", "components").out
    assert all(f"\n{kind}\n" in f"\n{everything}" for kind in ("attention", "norm", "optimizer"))
    assert re.search(r"^listener +paddle-tfm 0\.\d+\.\d+ +on_", call("ls", "plugins").out, re.M)


def test_ls_shows_a_plugin_of_a_file_and_words_in_brackets(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from paddle_tfm import hookimpl\nfrom paddle_tfm.protocols import Norm\n"
        "class Mine(Norm):\n    'Divides by [b]the norm[/b].'\n"
        "@hookimpl\ndef register_norms():\n    return {'mine': Mine}\n"
        "@hookimpl\ndef register_tasks():\n    raise KeyError('[/red]')\n"
    )
    assert "Divides by [b]the norm[/b]." in call("ls", "components", "--plugin", "mine.py").out
    message = call("ls", "plugins", "--plugin", "mine.py").out
    assert re.search(r"^mine +mine\.py sha256:\w+ +norm:mine", message, re.M)
    assert "mine failed to load: register_tasks: KeyError: '[/red]'" in message


# ---------------------------------------------------------------------------------------------------- show, check, cp


def test_check_says_that_a_recipe_is_sound_or_all_that_is_wrong():
    sound, note = call("check", "reverse", *TINY_TASK).out.splitlines()
    assert sound == "reverse.yaml is sound: 1 variant × 1 seed"
    assert (
        note
        == "note: in the training split too: 0 of 6 sources and 0 pairs of valid; 0 of 6 sources and 0 pairs of test"
    )
    done = call("check", "reverse", *TINY_TASK, "model.max_length=4")
    assert (done.status, done.out) == (2, "")
    assert re.match(
        r"Error: (valid|test): \d+ of 6 references have more than 3 pieces \(model\.max_length − 1\)", done.err
    )
    done = call("check", "reverse", *TINY_TASK, "model.norm={encoder: layer, decoder: batch}")
    assert done.status == 0
    assert re.search(r"^note: default: norm 'batch' in the decoder: ", done.out, re.M)
    done = call("check", "reverse", "model.norm=nrm", "model.placement=pst")
    assert done.status == 2 and "2 problems" in done.err


def test_cp_copies_with_comments_and_never_overwrites_unasked(tmp_path):
    done = call("cp", "quickstart", "mine.yaml", "--summary", "one norm: mine #1")
    assert done.out == "mine.yaml written. Edit it, then: paddle-tfm run mine.yaml\n"
    quickstart = shipped()["quickstart"].read_text("utf-8")
    summary = recipe.load("quickstart").data["summary"]
    expected = quickstart.replace("name: quickstart", "name: mine").replace(summary, "'one norm: mine #1'")
    assert (tmp_path / "mine.yaml").read_text("utf-8") == expected
    assert recipe.load("mine.yaml").data["summary"] == "one norm: mine #1"
    for name in sorted(shipped())[::3]:  # whatever a recipe's head looks like; without a terminal nobody is asked
        assert call("cp", name, "a_copy.yaml", "--force").status == 0
        copy = recipe.load("a_copy.yaml").data
        assert (copy["name"], copy["summary"]) == ("a_copy", f"a copy of {name.rpartition('/')[2]}, to be changed")
    (tmp_path / "mine.yaml").write_text("mine")
    done = call("cp", "reverse", "mine.yaml")
    assert (done.status, done.err) == (2, "Error: mine.yaml exists; add --force to overwrite it\n")
    assert (tmp_path / "mine.yaml").read_text() == "mine"
    assert call("cp", "reverse", "mine.yaml", "--force").status == 0
    assert call("cp", "reverse", ".").out.startswith("reverse.yaml written.")
    assert call("check", "mine.yaml", *TINY_TASK, "--no-step").status == 0


# ---------------------------------------------------------------------------------------- shells, pipes and terminals


@pytest.mark.parametrize("shell", ["zsh", "fish"])  # which may be missing where test_cli_completion.py types into them
def test_there_is_a_script_for_each_shell(shell):
    assert f"_PADDLE_TFM_COMPLETE={shell}_complete" in call("completion", shell).out


def test_colours_are_for_terminals_and_can_be_switched_off():
    assert ESCAPE in in_terminal(100, "ls", "recipes")
    assert ESCAPE not in (switched_off := in_terminal(100, "--no-color", "ls")) and "quickstart" in switched_off
    assert ESCAPE not in call("ls").out


# -------------------------------------------------------------------------------------------------------------- board


def test_board_serves_curves_on_this_machine_alone_and_ends_with_us(trained, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        board = [*COMMAND, "board", str(trained.out), "--port", str(port)]
        done = subprocess.run(board, capture_output=True, text=True, timeout=30)
        assert (done.returncode, f"127.0.0.1:{port} cannot be listened on" in done.stderr) == (2, True)
    process = subprocess.Popen(board, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        page = fetch(f"http://127.0.0.1:{port}/app/index")
        assert "<title>VisualDL" in page
        assert "scalar" in fetch(f"http://127.0.0.1:{port}/app/api/components")
        if os.path.exists("/proc/net/tcp"):  # noqa: PTH110
            with open("/proc/net/tcp") as table:  # noqa: PTH123
                listening = [line.split()[1] for line in table if line.split()[3] == "0A"]
            assert [each for each in listening if each.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]
    finally:
        process.terminate()
    assert f"http://127.0.0.1:{port}" in process.communicate(timeout=20)[0]
    with pytest.raises(urllib.error.URLError):
        fetch(f"http://127.0.0.1:{port}/", patience=0)
    assert not list(tmp_path.iterdir())


def fetch(address: str, patience: float = 30) -> str:
    """The text at an address that may not be there yet."""
    request = urllib.request.Request(address, headers={"Accept-Language": "en"})
    until = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.read().decode()
        except urllib.error.URLError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def test_a_comparison_that_cannot_be_written_is_shown_all_the_same(trained, tmp_path):
    """The page's place is taken by a folder: so it fails for a superuser too, whom no permission stops."""
    shutil.copytree(trained.out, tmp_path / "shared")
    (tmp_path / "shared" / "comparison.html").unlink()
    (tmp_path / "shared" / "comparison.html").mkdir()
    done = call("compare", "shared")
    assert done.status == 0, done.err
    assert re.search(r"^default +\d", done.out, re.M) and "report  " not in done.out
    assert "the report is not written: " in done.err and "--out DIR writes it elsewhere" in " ".join(done.err.split())
