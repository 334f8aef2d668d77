"""Bad input: one clear sentence with the place, what is allowed and the nearest name; exit status 2; no traceback;
nothing lost. The real command line in this process, a row a case."""

import pickle
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recipe_text import TINY_MODEL
from safetensors.numpy import load_file, save_file

from paddle_tfm.cli import main
from paddle_tfm.runs import manifest

SMALL = [
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 4, train: 60, valid: 10, test: 10}",
    *TINY_MODEL,
    "train.max_tokens=64", "train.steps=2", "evaluate.every=2",
]  # fmt: skip
HEAD = "base: base.yaml\nname: mine\nsummary: mine\n"


def complain(capsys, *arguments):
    """What the command says on standard error, after it has been seen to exit with 2 and without a traceback."""
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    assert left.value.code == 2, said.err
    assert "Traceback" not in said.err
    assert len(re.findall("^Error:", said.err, re.MULTILINE)) == 1
    return said.err


# recipe text after HEAD (whose last line is 3), and what must be said
RECIPES = {
    "no layers": ("model: {encoder_layers: 0, decoder_layers: 0}", ["line 4", "model.decoder_layers", "both 0"]),
    "metrics of outputs for a decoder alone": ("model: {encoder_layers: 0}", ["evaluate.metrics[0]", "'exact_match'", "known that score a text"]),
    "a choice for attention across without a decoder": ("model: {decoder_layers: 0, attention: {encoder: linear, cross: linear}}", ["model.attention.cross", "encoder-only"]),
    "tuning of one value": ("tune: {space: {train.schedule.peak: [1.0e-3]}, trials: 2}", ["line 4", "tune.space.train.schedule.peak", "has 1 value"]),
    "ALiBi on linear attention": ("model: {attention: linear, position: alibi}", ["model.position", "'alibi'", "'linear'", "supports embed"]),
    "an encoding at a site that it refuses": ("model: {position: {encoder: none, decoder: none, cross: sinusoidal}}", ["model.position.cross", "cross-attention"]),
    "a tokenizer for one side": ("tokenizer: {name: null, source: word}", ["tokenizer"]),
    "an infinite rate": ("train: {schedule: {name: cosine, peak: .inf}}", ["line 4", "train.schedule.peak", "must be a finite number, but is inf"]),
    "a place misspelled": ("model: {norm: {encoder: rms, dekoder: layer}}", ["1 problem", "line 4", "model.norm.dekoder", "unknown place of a model", "did you mean 'decoder'?"]),
    "an option misspelled that is like a place": ("model: {position: {name: nope_hybrid, encodin: rotary}}", ["1 problem", "model.position.encodin", "did you mean 'encoding'? Its options: encoding, every"]),
    "all forms of a tokenizer": ("tokenizer: 3", ["must be a name, {name: …, options…} or {source: …, target: …}, but is 3"]),
    "more examples than a whole number counts": ("task: {name: reverse, train: 1000000000000}", ["task.train", "must be at most 2,147,483,647"]),
    "options of which no number can be made": ("model: {position: {name: yarn, trained_length: 4096, slow: 1.0e-308}}", ["line 4", "model.position", "'yarn' cannot compute with these options: OverflowError"]),
}  # fmt: skip


@pytest.mark.parametrize("case", RECIPES)
def test_recipes(case, tmp_path, capsys):
    text, expected = RECIPES[case]
    file = tmp_path / "mine.yaml"
    file.write_text(HEAD + text + "\n", "utf-8")
    said = complain(capsys, "check", file)
    assert "mine.yaml" in said
    for part in expected:
        assert part in said, said


@pytest.mark.reliability
def test_a_model_larger_than_the_memory_is_said():
    done = subprocess.run(
        [sys.executable, "-m", "paddle_tfm", "check", "base", "model.d_model=65536"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("Error: the memory of this machine is too small for this: MemoryError: ")


def test_what_is_wrong_with_a_comparison_is_said_before_anything_is_trained(tmp_path, capsys):
    file = tmp_path / "mine.yaml"
    file.write_text(
        f"{HEAD}seeds: {{at_most: 5, looks: [3, 8]}}\nvariants: {{a: {{}}, b: {{model.norm: rms}}}}\n", "utf-8"
    )
    said = complain(capsys, "run", file, "--json", "--out", tmp_path / "runs")
    assert "look after 8 seeds, but `at_most` is 5" in said
    assert not (tmp_path / "runs").exists()


# overrides, and the start of the line that must be said: where what is to be mended was written
PLACES = {
    "heads": (["model.num_heads=3"], "command line  model.attention"),
    "an option of a search": (["search=beam", "search.size=0"], "command line  search"),
    "metrics without the best one": (["evaluate.metrics=[perplexity]"], "command line  evaluate.best"),
    "two vocabularies": (["vocabulary.shared=false"], "command line  model.share_embeddings"),
    "a default": ([], "line 4"),
}


@pytest.mark.parametrize("case", PLACES)
def test_a_problem_is_located_where_it_was_made(case, tmp_path, capsys):
    overrides, place = PLACES[case]
    own = "num_heads: 3" if case == "a default" else "share_embeddings: true"  # beside d_model of base.yaml
    file = tmp_path / "mine.yaml"
    file.write_text(HEAD + f"model: {{{own}}}\nvocabulary: {{shared: true}}\n", "utf-8")
    said = complain(capsys, "check", file, *overrides)
    assert any(line.strip().startswith(place) for line in said.splitlines()), said
    assert "base.yaml" not in said


def test_a_sweep_of_which_every_run_diverged_ends_with_1_and_says_what_to_try(tmp_path, capsys):
    rate = "train.schedule={name: constant, learning_rate: 1.0e30}"
    arguments = [*SMALL, rate, "train.clip_norm=null", "--out", tmp_path / "runs", "--workers", 1]
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in ("run", "reverse", *arguments)])
    said = capsys.readouterr()
    assert left.value.code == 1
    assert "Every run diverged." in said.err and "train.schedule.peak" in said.err and "train.clip_norm" in said.err
    assert "every run diverged" in said.out and (tmp_path / "runs/comparison.html").is_file()


FILES = {
    "not UTF-8": (b"name: \xff\xfe", "mine.yaml", ["mine.yaml", "UTF-8"]),
    "empty": (b"", "mine.yaml", ["base: base.yaml"]),
}


@pytest.mark.parametrize("case", FILES)
def test_files(case, tmp_path, capsys, monkeypatch):
    content, name, expected = FILES[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    said = complain(capsys, "check", name)
    for part in expected:
        assert part in said, said


CORPORA = {
    "file missing": ({}, "a.tsv", ["a.tsv"]),
    "TMX": ({"a.tmx": b'<?xml version="1.0"?>\n<tmx/>\n'}, "a.tmx", ["a.tmx: is XML, but neither TMX"]),
}


@pytest.mark.parametrize("case", CORPORA)
def test_corpora(case, tmp_path, capsys, monkeypatch):
    files, value, expected = CORPORA[case]
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    task = f"task={{name: parallel, train: {value}, valid: {value}}}"
    said = complain(capsys, "run", "base", *SMALL[1:], task)
    for part in expected:
        assert part in said, said
    checked = complain(capsys, "check", "base", *SMALL[1:], task, "--no-step")
    assert "2 problems" in checked and "  task.train  " in checked and "  task.valid  " in checked
    for part in expected:
        assert part in checked, checked


def test_check_reads_files_of_running_text_and_of_further_tests(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("one\n", "utf-8")
    lines = ["model.encoder_layers=0", "task={name: text, train: a.txt, valid: 0.5, test: b.txt}"]
    lines += ["evaluate.metrics=[perplexity]", "evaluate.best=perplexity"]
    said = complain(capsys, "check", "base", *SMALL[1:], *lines, "--no-step")
    assert "1 problem\n  command line  task.test  b.txt: no such file" in said
    tests = "evaluate.tests={new: {task: {name: parallel, train: c.tsv, valid: 3}}}"
    assert "evaluate.tests.new.task.train  c.tsv: no such file" in complain(capsys, "check", "base", *SMALL[1:], tests)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a finished sweep of one run."""
    folder = tmp_path_factory.mktemp("trained") / "out"
    with pytest.raises(SystemExit) as left:
        main(["run", "base", *SMALL, "--out", str(folder)])
    assert left.value.code == 0
    return folder


def truncate(path):
    path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2])


def retype(path):
    save_file({name: array.astype("float64") for name, array in load_file(path).items()}, path)
    in_manifest(path)


def forge(path):
    path.write_bytes(pickle.dumps(Touch()))  # whoever unpickles it makes a file
    in_manifest(path)


def in_manifest(path):
    """Whoever changes a checkpoint on purpose changes what its manifest says of it, too."""
    told = manifest.read(path.parent)
    (path.parent / manifest.FILE).unlink()
    manifest.write(path.parent, told["step"], told["identity"])


class Touch:
    def __reduce__(self):
        return Path.touch, (Path("executed"),)


RUNS = {
    "model cut short": (lambda run: truncate(run / "checkpoints/best/model.safetensors"), ["model.safetensors"]),
    "weights of another type": (lambda run: retype(run / "checkpoints/best/model.safetensors"), ["float64", "float32"]),
    "weights pickled": (lambda run: forge(run / "checkpoints/best/model.safetensors"), ["not a safetensors file"]),
    "checkpoint missing": (lambda run: shutil.rmtree(run / "checkpoints/best"), ["best", "no such checkpoint", "last"]),
    "vocabulary is garbage": (lambda run: (run / "codec/source/vocabulary.json").write_text("7"), ["vocabulary.json"]),
    "another architecture": (
        lambda run: (run / "recipe.yaml").write_text(
            (run / "recipe.yaml").read_text("utf-8").replace("d_ff: 16", "d_ff: 24"), "utf-8"
        ),
        ["model.safetensors", "shape"],
    ),
    "more layers": (
        lambda run: (run / "recipe.yaml").write_text(
            (run / "recipe.yaml").read_text("utf-8").replace("encoder_layers: 1", "encoder_layers: 2"), "utf-8"
        ),
        ["model.safetensors", "lacks encoder.layers.1"],
    ),
}


@pytest.mark.parametrize("case", RUNS)
def test_run_folders(case, trained, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    damage, expected = RUNS[case]
    shutil.copytree(trained, tmp_path / "out")
    damage(tmp_path / "out" / "default" / "seed-1")
    for verb in (["translate", tmp_path / "out/default/seed-1", "1 2"], ["evaluate", tmp_path / "out/default/seed-1"]):
        said = complain(capsys, *verb)
        for part in expected:
            assert part in said, said
    assert not Path("executed").exists()
