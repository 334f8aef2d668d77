"""The model card of a run: what it says of a finished, an unfinished and a damaged one."""

import re
import shlex
import shutil
from html import unescape

import pytest
from command_line import TINY, call

import paddle_tfm
from paddle_tfm.card.facts import RunFacts

SETTINGS = [*TINY, "task.test=30", "task.max_length=9", "train.steps=6"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    (folder,) = paddle_tfm.run("reverse", SETTINGS, out=tmp_path_factory.mktemp("runs") / "reverse")
    return folder


def text_of(path):
    return re.sub("<.*?>", " ", path.read_text("utf-8").partition("<body>")[2])


def copied_as(run, folder, *variants):
    for variant in variants:
        file = shutil.copytree(run, folder / variant / "seed-1") / "results.json"
        file.write_text(file.read_text().replace('"default"', f'"{variant}"'))
        file.with_name("manifest.json").unlink()


def test_a_single_run_gets_a_card_with_all_its_parts(run):
    done = call("report", run.parent.parent)
    assert done.status == 0 and done.out.startswith("card  ")
    html, text = (run / "report.html").read_text("utf-8"), text_of(run / "report.html")
    headings = re.findall("<h2>(.*?)</h2>", html)
    assert headings[:4] == ["How to use it", "Scores", "Outputs", "Attention"]
    assert {"Learning curves", "What it is", "What it cannot do", "Again"} == set(headings[4:])
    for wanted in (
        "paddle-tfm translate",
        "30 test examples",
        "By length",
        "among the most like their references",
        "target tokens a second",
        "80 training, 6 validation, 30 test examples",
        "d_model 16",
        "trained for 6 steps on reverse with seed 1",
        "at most",
    ):
        assert wanted in text, wanted
    assert 'aria-label="mean of heads. Most attention: ' in html
    assert "<script" not in html and "http" not in html


@pytest.mark.parametrize("source", ["3 1 2", "-3 1 '2'"])
def test_its_commands_do_what_they_say(run, source, tmp_path):
    card = shutil.copytree(run, tmp_path / "seed-1")
    head, *rows = (card / "predictions.tsv").read_text("utf-8").splitlines()
    rows = ["\t".join(["no", source, *row.split("\t")[2:]]) for row in rows]
    (card / "predictions.tsv").write_text("\n".join([head, *rows]) + "\n", "utf-8")
    call("report", card, "--quick")
    text = (card / "report.html").read_text("utf-8")
    command = next(
        line for line in re.findall("<code>(.*?)</code>", text, re.DOTALL) if line.startswith("paddle-tfm translate")
    )
    done = call(*shlex.split(unescape(command))[1:])
    assert done.status == 0 and len(done.out.splitlines()) == 1


def test_quick_needs_no_checkpoint(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    shutil.rmtree(copy / "checkpoints")
    assert call("report", copy, "--quick").status == 0
    text = text_of(copy / "report.html")
    assert "mean of heads" not in text and "By length" in text
    done = call("report", copy)
    assert done.status == 0 and "written without what needs the model" in done.err


def test_an_unfinished_run_gets_one_and_says_how_far_it_is(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    for name in ("results.json", "predictions.tsv"):
        (copy / name).unlink()
    assert call("report", copy, "--out", tmp_path / "elsewhere").status == 0
    text = text_of(tmp_path / "elsewhere" / "report.html")
    assert "This run is not finished: it has done 6 of 6 steps." in text
    assert "None were recorded" in text and "There are none yet." in text


@pytest.mark.reliability
def test_several_runs_get_their_comparison(run, tmp_path):
    copied_as(run, tmp_path / "runs", "one", "two")
    done = call("report", tmp_path / "runs")
    assert (done.status, done.out) == (0, f"report  {tmp_path / 'runs' / 'comparison.html'}\n")


def test_sections_that_load_a_model_compute_on_the_device_that_is_named(run, tmp_path):
    shutil.copytree(run, tmp_path / "default/seed-1")
    shutil.copytree(run, tmp_path / "default/seed-2")
    done = call("report", tmp_path, "--all", "--device=tpu")
    assert done.status == 2 and "--device tpu: must be cpu, gpu or gpu:N" in done.err


@pytest.mark.reliability
def test_attention_is_shown_on_a_sentence_that_is_named(run, tmp_path):
    copied_as(run, tmp_path, "one", "two")
    text = "1 2 2 1 <i>"
    for folder, page in ((run, "report.html"), (tmp_path, "comparison.html")):
        texts = ("--sentence", text, "--sentence", "2 2", "--sentence", "1 " * 300)
        done = call("report", folder, *texts, "--out", tmp_path / "out")
        assert done.status == 0, done.err
        html = (tmp_path / "out" / page).read_text("utf-8")
        assert '<h3 dir="auto">1 2 2 1 &lt;i&gt;</h3>' in html and '<h3 dir="auto">2 2</h3>' in html
        assert "mean of heads" in html and "about 0.5" in html
        assert re.search(r"300 pieces are more than the \d+ that the model reads", text_of(tmp_path / "out" / page))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--sentence", " "], "--sentence is empty; write the text whose attention you want to see"),
        (["--sentence", "1", "--quick"], "--sentence needs the model, which --quick does not load"),
    ],
)
def test_a_sentence_that_cannot_be_read_is_refused(run, options, sentence):
    done = call("report", run, *options)
    assert done.status == 2 and sentence in done.err


def test_where_no_run_is_it_says_so(tmp_path):
    done = call("report", tmp_path)
    assert done.status == 2 and "no run is here" in done.err


def test_a_decoder_only_run_writes_a_text_of_its_own(tmp_path):
    settings = ["model.d_model=16", "model.num_heads=2", "model.d_ff=16", "train.steps=2", "evaluate.every=2"]
    file = tmp_path / "text.txt"
    file.write_text("\n".join(f"a line of text, number {i}" for i in range(200)), "utf-8")
    task = f"task={{name: text, train: {file}, valid: {file}, test: null, block: 32, stride: 32}}"
    (folder,) = paddle_tfm.run(
        "tiny-gpt", [*settings, task, "variants={one: {model.dropout: 0.0}}", "baseline=one"], out=tmp_path / "runs"
    )
    assert call("report", folder).status == 0
    text = text_of(folder / "report.html")
    assert "A decoder-only Transformer" in text and "A text that it writes from nothing" in text
    html = (folder / "report.html").read_text("utf-8")
    assert re.findall(r"> ?(\w+ \d)</label>", html) == ["decoder 0"]
    spoken = unescape(re.search('aria-label="head 0. Most attention: (.*?)"', html)[1]).split("; ")
    assert [pair.split(" on ")[0] for pair in spoken] == ["<s>", *"a␣line␣of␣te"[: len(spoken) - 1]]
    command = re.search("<code>(paddle-tfm translate .*?)</code>", (folder / "report.html").read_text("utf-8"))[1]
    done = call(*shlex.split(re.sub("<.*?>", "", command))[1:], "--length", "3")
    assert done.status == 0 and done.err.startswith("engine: paddle, as search 'sampling' has no export rule")
    assert "1 decoder layer, d_model 16" in text and "the last 127 tokens" in text
    scores = re.search(
        "<caption>the best checkpoint.*?</thead>", (folder / "report.html").read_text("utf-8"), re.DOTALL
    )
    assert re.findall("<th [^>]*>(.*?)</th>", scores[0]) == [
        "metric",
        "validation",
    ]  # no column of a split without scores


def test_a_run_without_its_recipe_is_refused(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "recipe.yaml").unlink()
    done = call("report", copy)
    assert done.status == 2 and "a card needs it" in done.err
    assert RunFacts(run).shape == "encoder-decoder"


def test_a_run_of_a_plugin_that_is_not_loaded_names_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from paddle_tfm import hookimpl\nfrom paddle_tfm_plugins.norm.rms import RMSNorm\n"
        "@hookimpl\ndef register_norms():\n    return {'mine': RMSNorm}\n"
    )
    assert call("run", "reverse", *SETTINGS, "model.norm=mine", "--plugin", "mine.py", "--out", "runs").status == 0
    done = call("report", "runs", "--quick")
    assert done.status == 2 and "trained with a plugin that is not loaded now; add --plugin " in done.err
    assert "mine.py" in done.err
    assert call("report", "runs", "--quick", "--plugin", "mine.py").status == 0
