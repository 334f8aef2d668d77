"""Files of a run that others wrote, or that are damaged within: each costs its own run, with a sentence, and no other; no
traceback, no wait, no memory that grows with what a file says. The real command line in this process."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from recipe_text import TINY_MODEL
from safetensors.numpy import load_file, save_file

import paddle_tfm
from paddle_tfm import runtime
from paddle_tfm.cli import main
from paddle_tfm.errors import UserError
from paddle_tfm.train import forms

pytestmark = pytest.mark.reliability
SWEEP = [
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 4, train: 60, valid: 10, test: 10}",
    *TINY_MODEL,
    "train.max_tokens=64", "train.steps=2", "evaluate.every=2", "variants={layer: {}, rms: {model.norm: rms}}",
]  # fmt: skip
HUGE = 10**400  # an integer that no float holds


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of two finished runs, of two variants."""
    folder = tmp_path_factory.mktemp("trained") / "sweep"
    with pytest.raises(SystemExit) as left:
        main(["run", "base", *SWEEP, "--workers", "1", "--out", str(folder)])
    assert left.value.code == 0
    return folder


@pytest.fixture
def sweep(trained, tmp_path):
    """A copy of it, one run of which a test may damage: `layer/seed-1`. Without the manifests of its runs, which
    would leave it out before anything in it is read."""
    copy = shutil.copytree(trained, tmp_path / "sweep")
    for manifest in copy.glob("*/seed-*/manifest.json"):
        manifest.unlink()
    return copy


@pytest.fixture
def call(capsys):
    """Status and all that the command says, which is no traceback."""

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        return left.value.code, " ".join((said.out + said.err).split())

    return run


def change(file, **values):
    """The mapping in a file with some values replaced; text is written as it is."""
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), **values}).replace('"1e999"', "1e999"), "utf-8")


RESULTS = [
    {"parameters": None},
    {"variant": ["layer"]},
    {"variant": "\ud800"},
    {"seed": {"n": 1}},
    {"data": [1]},
    {"recipe": None},
    {"steps": "1e999"},
    {"steps": "4"},
    {"units": {"exact_match": 1}},
    {"test": {"loss": "2.5"}},
    {"tests": {"far": {"scores": [1]}}},
    {"seconds": HUGE},
    {"seconds": 1.7e308},
    {"test": {"loss": -1.7e308}},
    {"valid": {"loss": 1e151}},
]


@pytest.mark.parametrize("values", RESULTS, ids=lambda values: str(values)[:40])
def test_results_of_other_types_cost_their_run_alone(values, sweep, call):
    run, field = sweep / "layer/seed-1", next(iter(values))
    change(run / "results.json", **values)
    for verb in [["compare", sweep], *([["report", sweep]] if field == "parameters" else [])]:
        status, said = call(*verb)
        assert status == 0 and f"{run / 'results.json'}: damaged: " in said and "this run is left out" in said
    if values not in ({"variant": "\ud800"}, {"seconds": HUGE}):  # refused before fields are looked at
        assert f"`{field}" in said
    status, said = call("ls", "runs", sweep)
    assert status == 0 and "1 of 2 done" in said and "1 unreadable" in said and "results.json: damaged" in said
    status, said = call("check", run)
    assert status == 1 and "bad results.json" in said
    assert call("report", run, "--quick")[0] == 0
    status, said = call("compare", run)  # the one that was asked for
    assert status == 2 and f"Error: {run / 'results.json'}: damaged: " in said


BESIDE = {
    "about.json": [
        {"examples": {"train": 1, "test": "x"}},
        {"samples": 3},
        {"samples": [["a", float("nan")]]},
        {"samples": [["\ud800", "b"]]},
        {"mean_length": {"source": 1.0}},
        {"vocabulary": [9]},
    ],
    "identity.json": [{"components": {"feed_forward relu": [1]}}, {"components": {"norm layer": "\ud800"}}],
}


@pytest.mark.parametrize("file, values", [(file, each) for file, all_ in BESIDE.items() for each in all_])
def test_what_a_report_can_do_without_is_left_out(file, values, sweep, call):
    run = sweep / "layer/seed-1"
    change(run / file, **values)
    for verb in [["compare", sweep], *([["report", run, "--quick"]] if file == "about.json" else [])]:
        assert call(*verb)[0] == 0
    status, said = call("check", run)
    assert status == 1 and f"{run / file}: damaged: " in said


def test_a_number_that_no_float_holds_is_no_row_of_a_log(sweep, call, tmp_path):
    run = sweep / "layer/seed-1"
    with (run / "metrics.jsonl").open("a") as log:
        log.write(json.dumps({"step": 2, "loss": 1.0, "gradient_norm": HUGE}) + "\n")
    assert call("report", sweep, "--out", tmp_path / "page")[0] == 0
    assert "bad metrics.jsonl 1 line of 4 cannot be read" in call("check", run)[1]


def test_steps_are_counted_and_not_listed(sweep, call):
    run = sweep / "layer/seed-1"
    before = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_text(before + json.dumps({"step": 5 * 10**9, "loss": 1.0}) + "\n")
    status, said = call("check", run, "--without-data")
    assert status == 1 and "step 5,000,000,000 is beyond the recipe's, which has 2 steps" in said
    (run / "metrics.jsonl").write_text('{"step": 2, "loss": 1.0}\n')
    assert "step 1 is missing" in call("check", run, "--without-data")[1]
    rows = before.splitlines(keepends=True)
    last = max(number for number, row in enumerate(rows) if "evaluation" not in row)
    (run / "metrics.jsonl").write_text("".join(rows[:last] + rows[last + 1 :]))
    assert "step 2 is missing" in call("check", run, "--without-data")[1]


def test_the_recipe_of_a_run_is_of_one_run(sweep, call):
    run = sweep / "layer/seed-1"
    text = (run / "recipe.yaml").read_text("utf-8")
    (run / "recipe.yaml").write_text(text.replace("seeds: [1]", "seeds: [1, 2]"), "utf-8")
    sentence = f"{run / 'recipe.yaml'}: a run has one variant and one seed, but this recipe is of 2 runs"
    for verb, status in (("translate", 2), ("check", 1), ("report", 2)):
        left, said = call(verb, run, *(["1 2"] if verb == "translate" else []))
        assert left == status and sentence in said


@pytest.mark.parametrize("text", ["{[", "evaluate: abc\n", "evaluate: {best: [1]}\n", "evaluate: {best: {a: 1}}\n"])
def test_a_recipe_of_a_run_that_is_damaged_costs_its_run_alone(text, trained, tmp_path, call):
    sweep = shutil.copytree(trained, tmp_path / "sweep")
    run = sweep / "layer/seed-1"
    whole = (run / "recipe.yaml").read_text("utf-8")
    kept = text if "best" not in text else re.sub("(?m)^evaluate:(\n  .*)*\n", text, whole)
    (run / "recipe.yaml").write_text(kept, "utf-8")
    for verb in ("compare", "report"):
        status, said = call(verb, sweep)
        assert status == 0 and f"{run / 'recipe.yaml'}: damaged: " in said
        assert verb == "report" or "exact match ↑" in said


@pytest.mark.parametrize("pid", ["1e999", -1, None, HUGE])
def test_a_claim_of_nobody(pid, sweep, call):
    run = sweep / "layer/seed-1"
    (run / "results.json").unlink()
    text = json.dumps({"host": "x", "pid": pid, "since": "2026"}).replace('"1e999"', "1e999")
    (run / "claim.json").write_text(text)
    for form in ([], ["--json"]):
        assert call("ls", "runs", sweep, *form)[0] == 0


FILES = [
    *(
        "results.json",
        "metrics.jsonl",
        "timings.jsonl",
        "recipe.yaml",
        "identity.json",
        "about.json",
        "predictions.tsv",
    ),
    *(
        "codec/source/vocabulary.json",
        "codec/source/sentencepiece.model",
        "checkpoints/best/manifest.json",
        "checkpoints/best/model.safetensors",
        "checkpoints/best/state.json",
        "claim.json",
    ),
]


# what cannot be done without it, and says so
NEEDED = {
    "results.json": "compare",
    "recipe.yaml": "translate",
    "codec/source/vocabulary.json": "translate",
    "checkpoints/best/model.safetensors": "translate",
    "codec/source/sentencepiece.model": "translate",
}


@pytest.mark.parametrize("file", FILES)
def test_no_pipe_and_no_device_is_read(file, sweep, call, tmp_path):
    run = sweep / "layer/seed-1"
    verbs = [["compare", run], ["ls", "runs", sweep], ["check", run], ["translate", run, "1"]]
    verbs.append(["report", sweep, "--out", tmp_path / "page"])
    if file == "claim.json":
        (run / "results.json").unlink()  # else nobody asks who trains it
    if "checkpoints" in file:
        (run / "checkpoints/best/manifest.json").unlink()  # else its hash is read before
    for make, what in ((os.mkfifo, verbs), (lambda path: path.symlink_to("/dev/zero"), verbs[2:3])):
        (run / file).unlink(missing_ok=True)
        make(run / file)
        for verb in what:
            status, said = call(*verb)
            assert status in (0, 1) or "is no regular file" in said or "no such file" in said or "run is here" in said
            if NEEDED.get(file) == verb[0]:
                assert status and file.split("/")[-1] in said


def test_a_log_that_is_larger_than_any_is_not_read(sweep, call):
    run = sweep / "layer/seed-1"
    os.truncate(run / "metrics.jsonl", 1 << 40)  # sparse: it takes no room on the disk
    os.truncate(run / "about.json", 1 << 40)
    status, said = call("check", run, "--without-data")
    assert status == 1 and "metrics.jsonl cannot be read: it has 1,099,511,627,776 bytes, and at most" in said
    status, said = call("compare", sweep)
    assert status == 2 and f"{run / 'metrics.jsonl'}: it has 1,099,511,627,776 bytes" in said


@pytest.mark.parametrize("unlisted", ["model.safetensors", "state.json", "more.safetensors"])
def test_a_manifest_lists_what_is_read(unlisted, sweep, call):
    best = sweep / "layer/seed-1/checkpoints/best"
    manifest = json.loads((best / "manifest.json").read_text("utf-8"))
    (best / "more.safetensors").touch()
    manifest["files"].pop(unlisted, None)
    (best / "manifest.json").write_text(json.dumps(manifest))
    for verb, status in ((["check", best.parents[1], "--without-data"], 1), (["translate", best.parents[1], "1"], 2)):
        left, said = call(*verb)
        assert left == status and f"{best / 'manifest.json'}: damaged: it does not list" in said and unlisted in said


def test_a_name_that_is_not_utf8_is_refused_before_anything_is_done(sweep, call, tmp_path):
    name = os.fsdecode(b"r\xff")
    odd = shutil.copytree(sweep, tmp_path / "all" / name)
    for verb in (
        ["compare", odd],
        ["report", odd / "layer/seed-1", "--quick"],
        ["export", odd / "layer/seed-1", "--to", "ctranslate2"],
        ["run", "base", *SWEEP, "--out", tmp_path / name],
        ["compare", tmp_path / "all", "--json"],
    ):
        status, said = call(*verb)
        assert status == 2 and "r\\udcff" in said and "names and texts must be UTF-8, and this is not" in said
    assert not (tmp_path / name).exists()


def test_controls_of_a_name_are_seen_in_reports_and_figures(sweep, call, tmp_path):
    hostile, page = "a\x1b[31m\x9bz\x07", tmp_path / "page"
    sweep = sweep.rename(tmp_path / hostile)
    change(sweep / "layer/seed-1/results.json", variant=f"{hostile}/layer")
    assert call("report", sweep, "--out", page)[0] == 0
    assert call("report", sweep / "rms/seed-1", "--quick", "--out", page)[0] == 0
    texts = {file.name: file for file in page.rglob("*") if file.suffix in (".html", ".md", ".tex", ".svg")}
    assert {file.suffix for file in texts.values()} == {".html", ".md", ".tex", ".svg"}
    for name, file in texts.items():
        text = file.read_text("utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), name
        if file.suffix == ".svg":
            ElementTree.fromstring(text)
    for name in ("report.html", "comparison.html"):
        assert "a␛[31m\ufffdz␇" in texts[name].read_text("utf-8")


def test_folders_beside_a_tokenizer_and_links_to_nothing_are_nobodys(sweep, call):
    codec = sweep / "layer/seed-1/codec/source"
    (codec / ".ipynb_checkpoints").mkdir()
    (codec / "gone").symlink_to("nowhere")
    assert call("translate", sweep / "layer/seed-1", "1 2")[0] == 0


@pytest.mark.parametrize(
    ("file", "values", "sentence"),
    [
        ("about.json", {"samples": [["a"]]}, "`samples.0` must have 2 entries or more, but is ['a']"),
        ("results.json", {"tests": {"far": 3}}, "`tests.far` must be a mapping, but is 3"),
        ("claim.json", {}, "it lacks `since`"),
    ],
)
def test_sentences_on_fields_are_no_python(file, values, sentence, sweep):
    path = sweep / "layer/seed-1" / file
    if file == "claim.json":
        path.write_text(json.dumps({"host": "x", "pid": 1}))
    change(path, **values)
    form = {"about.json": forms.About, "results.json": forms.Results, "claim.json": forms.Claim}[file]
    with pytest.raises(UserError) as raised:
        forms.read_form(path, form)
    assert str(raised.value) == f"{path}: damaged: {sentence}"


def test_a_result_without_its_steps_is_damaged(sweep, call):
    file = sweep / "layer/seed-1/results.json"
    stored = json.loads(file.read_text("utf-8"))
    del stored["steps"]
    file.write_text(json.dumps(stored))
    status, said = call("compare", sweep)
    assert status == 0 and "results.json: damaged: it lacks steps; this run is left out" in said


ROWS = [
    {"gradient_norms": True},
    {"gradient_norms": {"": None}},
    {"gradient_norms": {"a": {"b": 1.0}}},
    {"norms": {"a": 1.0}},
    {"loss": 1e308},
    {"evaluation": [1]},
    {"evaluation": {"loss": 1e308}},
]


@pytest.mark.parametrize("values", ROWS, ids=str)
def test_no_row_of_a_log_ends_a_report(values, sweep, call, tmp_path):
    run = sweep / "layer/seed-1"
    with (run / "metrics.jsonl").open("a") as log:
        log.write(json.dumps({"step": 2, "loss": 1.0, "gradient_norm": 1.0, **values}) + "\n")
    assert call("report", sweep, "--out", tmp_path / "page")[0] == 0
    assert call("report", run, "--quick", "--out", tmp_path / "page")[0] == 0
    assert call("ls", "runs", sweep)[0] == 0
    (run / "results.json").unlink()
    (run / "metrics.jsonl").write_text('{"step": 1}\n')
    status, said = call("run", "base", *SWEEP, "--workers", "1", "--out", sweep, "--resume", "--strict")
    assert status == 0 and "failed in" not in said


def test_a_checkpoint_of_another_run_is_refused(sweep, call):
    ours, others = (sweep / name / "checkpoints" for name in ("layer/seed-1", "rms/seed-1"))
    shutil.rmtree(ours)
    shutil.copytree(others, ours)
    sentence = f"{ours / 'best'}: is of another run: it was saved by one of another recipe"
    assert sentence in call("check", ours.parent, "--without-data")[1]
    assert call("translate", ours.parent, "1")[0] == 2
    (ours.parent / "results.json").unlink()
    status, said = call("run", "base", *SWEEP, "--workers", "1", "--out", sweep, "--resume")
    assert status and f"{ours / 'last'}: is of another run" in said


def test_so_is_one_of_other_texts(sweep, call):
    """Of the same recipe, whose files hold other texts now: their vocabulary may be as large, in another order."""
    run = sweep / "layer/seed-1"
    data = json.loads((run / "identity.json").read_text("utf-8"))["data"]
    change(run / "identity.json", data={**data, "train": "0" * 64})
    sentence = f"{run / 'checkpoints/best'}: is of another run: it was saved by one of other texts"
    for verb in (["check", run, "--without-data"], ["translate", run, "1"], ["evaluate", run]):
        status, said = call(*verb)
        assert status in (1, 2) and sentence in said


def test_an_optimizers_state_that_does_not_fit_is_said(sweep, call):
    run = sweep / "layer/seed-1"
    (run / "results.json").unlink()
    for file in (run / "checkpoints/last/manifest.json", run / "checkpoints/best/manifest.json"):
        file.unlink()
    file = run / "checkpoints/last/optimizer.safetensors"
    save_file({name: array.reshape(-1)[:1] for name, array in load_file(file).items()}, file)
    status, said = call("run", "base", *SWEEP, "--workers", "1", "--out", sweep, "--resume")
    assert status and "checkpoints/last: its optimizer's state does not fit the recipe" in said


@pytest.fixture(scope="module")
def diverged(tmp_path_factory):
    """A run whose second step could not be made."""
    folder = tmp_path_factory.mktemp("diverged")
    rate = "train.schedule={name: constant, learning_rate: 1.0e+30}"
    with pytest.raises(SystemExit):
        main(["run", "base", *SWEEP[:-1], rate, "--workers", "1", "--out", str(folder)])
    return folder / "default/seed-1"


@pytest.mark.parametrize("file", ["batches.safetensors", "state.json"])
def test_a_step_that_diverged_is_done_again_unless_what_was_kept_of_it_is_damaged(file, diverged, call, tmp_path):
    run = shutil.copytree(diverged, tmp_path / "run")
    status, said = call("check", run)
    assert status == 0 and "note divergence the loss was no number" in said and "not finite" in said
    path = run / "checkpoints/diverged" / file
    content = path.read_bytes()
    path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    status, said = call("check", run)
    assert status == 1 and f"bad diverged {path}: damaged" in said and "not finite" not in said


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.write_bytes(b"\xff\xff")], ids=["pipe", "bytes"])
def test_the_settings_of_matplotlib_that_lie_here_are_not_read(make, sweep):
    make(sweep / "matplotlibrc")
    command = [*runtime.python(), "-m", "paddle_tfm", "compare", "."]
    done = subprocess.run(command, cwd=sweep, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


def test_a_report_s_folder_that_is_a_link_is_not_written_to(sweep, call, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (sweep / "comparison").symlink_to(tmp_path / "elsewhere")
    status, said = call("report", sweep)
    assert status == 2 and f"{sweep / 'comparison'}: is a link" in said
    assert not list((tmp_path / "elsewhere").iterdir())


def test_no_export_is_written_through_a_link(sweep, call, tmp_path):
    (tmp_path / "elsewhere/ctranslate2.old").mkdir(parents=True)
    (sweep / "layer/seed-1/export").symlink_to(tmp_path / "elsewhere")
    status, said = call("export", sweep / "layer/seed-1", "--to", "ctranslate2")
    assert status == 2 and "export: is a link" in said
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["ctranslate2.old"]


def test_runs_go_through_a_link_only_where_it_is_named(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("elsewhere").mkdir()
    Path("elsewhere/command.json").write_text("mine")
    Path("runs").mkdir()
    Path("runs/base").symlink_to("../elsewhere")
    status, said = call("run", "base", *SWEEP, "--workers=1")
    assert status == 2 and "runs/base: is a link; use --out runs/base" in said
    with pytest.raises(UserError, match="runs/base: is a link"):
        paddle_tfm.run("base", SWEEP)
    assert [(path.name, path.read_text()) for path in Path("elsewhere").iterdir()] == [("command.json", "mine")]
    status, said = call("run", "base", *SWEEP, "--workers=1", "--out=runs/base")
    assert status == 0 and Path("elsewhere/layer/seed-1/results.json").is_file(), said
    Path("runs/base").unlink()
    Path("runs").rename("disk")
    Path("runs").symlink_to("disk")  # as one does whose runs are to be on a larger disk
    status, said = call("run", "base", *SWEEP, "--workers=1")
    assert status == 0 and Path("disk/base/layer/seed-1/results.json").is_file(), said
