"""The kit over kinds that stand in no model: what needs files or options, and what is said of what cannot be built. What needs
none of these: test_components.py."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from paddle_tfm import create_registry
from paddle_tfm.components import Entry
from paddle_tfm.errors import UserError
from paddle_tfm.plugins import Provider
from paddle_tfm.protocols import Dataset, Example, RemoteFile, Tokenizer
from paddle_tfm.testing import EXPECTED_FAILURE, FAIL, PASS, SKIP, examine


@pytest.mark.conformance
def test_the_kit_is_imported_before_paddle_is_and_what_reports_are_written_with_for_sections_only():
    """Paddle prints a warning when it is imported, but for `load_paddle`; SciPy and matplotlib take longer than all
    checks of a metric."""
    script = (
        "import sys, paddle_tfm.testing as kit; print('paddle' in sys.modules); kit.checks('metric'); "
        "print([name for name in ('scipy', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines()[0], done.stdout.splitlines()[-1]) == ("False", "[]")


@pytest.mark.parametrize("name", ["perplexity", "token_accuracy", "token_error_rate"])
def test_a_metric_that_other_pieces_change_must_say_so(name, monkeypatch):
    cls = create_registry().resolve("metric", name, "metric").cls
    monkeypatch.setattr(cls, "per_piece", False)
    (outcome,) = examine("metric", name, {}, only=frozenset({"asks"}))
    assert outcome.status == FAIL and "set `per_piece = True`" in str(outcome)


# ------------------------------------------------------------------------------------------------ what needs more


class Sentences(Dataset):
    """Twenty sentences in two languages; no file is needed."""

    folder, languages = "sentences", ("en", "de")

    def __init__(self, shared: bool = False):
        self.shared = shared

    def files(self):
        return ()

    def read(self, split, paths):
        numbers = {"train": range(20), "valid": range(19 if self.shared else 20, 25), "test": range(25, 30)}[split]
        return (Example(f"This is number {i}.", f"Das ist Nummer {i}, Anna.") for i in numbers)


class ManySentences(Sentences):
    """As many as the task `language`, which splits by hashes, needs for each of its splits to have some."""

    folder = "many_sentences"

    def read(self, split, paths):
        return (Example(f"This is number {i}.", f"Das ist Nummer {i}.") for i in range(900 if split == "train" else 0))


@pytest.fixture
def registry():
    registry = create_registry()
    registry.add(Entry("dataset", "many_sentences", ManySentences, Provider("tests", "tests", "")))
    registry.add(Entry("dataset", "sentences", Sentences, Provider("tests", "tests", "")))
    return registry


@pytest.mark.parametrize(
    "name, options",
    [
        ("parallel", {"dataset": "sentences"}),
        ("truecase", {"dataset": "sentences"}),
        ("text", {"dataset": "sentences"}),
        ("text", {"dataset": "sentences", "block": 30, "stride": 10}),
        ("language", {"datasets": ["many_sentences"]}),
    ],
    ids=str,
)
def test_tasks_over_a_corpus_pass(name, options, registry):
    report = examine("task", name, options, registry)
    assert [str(outcome) for outcome in report.failures] == []
    assert report["same_examples"].status == PASS and report["splits_disjoint"].status == PASS


def test_a_corpus_whose_splits_overlap_is_an_expected_failure_with_the_reason(registry):
    report = examine("task", "parallel", {"dataset": {"name": "sentences", "shared": True}}, registry)
    assert report["splits_disjoint"].status == EXPECTED_FAILURE
    assert "read as they are" in report["splits_disjoint"].detail


@pytest.mark.parametrize("name, lines", [("train.tsv", True), ("train.jsonl", False)])
def test_a_task_over_files_of_mine_passes(name, lines, tmp_path):
    pairs = [(f"one {i}", f"eins {i}") for i in range(60)]
    text = "\n".join("\t".join(pair) if lines else json.dumps(dict(zip(("source", "target"), pair))) for pair in pairs)
    (tmp_path / name).write_text(text, "utf-8")
    report = examine("task", "parallel", {"train": str(tmp_path / name), "valid": 0.2})
    assert [outcome.status for outcome in report] == [PASS, PASS, PASS]


class OfFiles(Sentences):
    """Two files."""

    home, licence, citation = "https://example.org", "CC0-1.0", "nobody"

    @classmethod
    def catalogue(cls):
        return [RemoteFile(f"{name}.txt", (f"{cls.home}/{name}.txt",)) for name in ("train", "valid", "test")]

    def files(self):
        return self.catalogue()

    def read(self, split, paths):
        lines = Path(paths[f"{split}.txt"]).read_text("utf-8").splitlines()
        return (Example(line, line.upper()) for line in lines)


def test_a_dataset_is_read_where_its_files_are_and_skipped_where_they_are_not(registry, tmp_path, monkeypatch):
    monkeypatch.setenv("PADDLE_TFM_DATA", str(tmp_path))
    monkeypatch.setattr(Sentences, "folder", "elsewhere")
    OfFiles.folder = "sentences"
    registry.add(Entry("dataset", "of_files", OfFiles, Provider("tests", "tests", "")))
    report = examine("dataset", "of_files", registry=registry)
    assert report["reads"].status == SKIP and "train.txt is not here" in report["reads"].detail
    (tmp_path / "sentences").mkdir()
    for name, text in (("train", "one\ntwo\n"), ("valid", "three\n"), ("test", "four\n")):
        (tmp_path / "sentences" / f"{name}.txt").write_text(text, "utf-8")
    report = examine("dataset", "of_files", registry=registry)
    assert [outcome.status for outcome in report] == [PASS] * 4
    assert report["reads"].detail == "train 2, valid 1, test 1"
    (tmp_path / "sentences" / "valid.txt").write_text("three\n \n", "utf-8")
    (tmp_path / "sentences" / ".checked.json").unlink()
    assert examine("dataset", "of_files", registry=registry)["reads"].status == FAIL


@pytest.mark.conformance
def test_sampling_tokenizers_pass():
    for model, sampling in (("unigram", 0.2), ("bpe", 0.1)):
        report = examine("tokenizer", "sentencepiece", {"model": model, "sampling": sampling})
        assert [str(outcome) for outcome in report.failures] == []
        assert report["sample"].status == PASS


def test_a_tokenizer_of_a_file_passes(tmp_path):
    library = pytest.importorskip("tokenizers", reason="the optional package tokenizers is not installed")
    made = library.Tokenizer(library.models.BPE())
    made.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = library.decoders.ByteLevel()
    alphabet = library.pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        ["Zwei junge Männer"], library.trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet)
    )
    made.save(str(tmp_path / "mine.json"))
    report = examine("tokenizer", "hugging_face", {"file": str(tmp_path / "mine.json")})
    assert [str(outcome) for outcome in report.failures] == []


# ------------------------------------------------------------------------------------------- what cannot be built


def test_what_cannot_be_built_is_a_sentence_with_the_options_that_it_needs():
    with pytest.raises(UserError, match=r"task truecase needs `dataset`: --option dataset=…"):
        examine("task", "truecase")
    with pytest.raises(UserError, match=r"schedule cosine cannot be built: 'cosine' refuses: `peak` must be positive"):
        examine("schedule", "cosine", {"peak": 0.0})


class PieceALine(Tokenizer):
    """Words, and what stands between them; saved a piece a line, though a piece may hold a line break."""

    def fit(self, texts):
        self.learned = sorted({piece for text in texts for piece in self.tokenize(text)})

    def normalize(self, text):
        return text

    def tokenize(self, text):
        known = set(getattr(self, "learned", ()))
        parts = [part for part in text.split(" ") if part] if not known else re.findall(r"[^ ]+| ", text)
        return [piece for part in parts for piece in ([part] if not known or part in known else part)]

    def detokenize(self, pieces):
        return "".join(pieces)

    def pieces(self):
        return list(self.learned)

    def save(self, folder):
        (folder / "pieces.txt").write_text("\n".join(self.learned))

    def load(self, folder):
        self.learned = (folder / "pieces.txt").read_text().split("\n")


def test_what_is_lost_on_the_way_back_is_seen(registry):
    registry.add(Entry("tokenizer", "mine", PieceALine, Provider("tests", "tests", "")))
    report = examine("tokenizer", "mine", {}, registry, frozenset({"saved_order"}))
    assert [outcome.check.name for outcome in report.failures] == ["saved_order"]
