"""`task.filters`: which pairs of a training split stay, beside rules written down here; what is counted, and where."""

import json
from pathlib import Path

import pytest

from paddle_tfm import UserError, create_registry, load_recipe
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.data.pairs import Files
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.sweep.check import check_texts
from paddle_tfm.train.run import create
from paddle_tfm_plugins.task.parallel import Filters, Parallel

KEPT = [
    ("a small dog", "ein kleiner Hund"),
    ("a cat", "eine Katze"),
    ("it is 7", "es ist 7"),
    ("नमस्ते दोस्त", "guten Tag"),
]
BAD = {
    "length": [("word " * 101, "Wort " * 99)],
    "ratio": [("one two three four five six seven", "eins zwei"), ("no", "nein danke vielen Dank")],
    "letters": [("7 8 9", "sieben acht neun"), ("look here", "+++ >>> a")],
    "overlap": [("a horse", "noch ein Pferd"), ("another fish", "ein Fisch")],
    "duplicates": [KEPT[0], KEPT[2]],
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = [*KEPT, *(pair for several in BAD.values() for pair in several)]
    texts = {"train": pairs, "valid": [("a horse", "ein Pferd"), ("7 8", "+")], "test": [("a fish", "ein Fisch")] * 2}
    for name, several in texts.items():
        Path(f"{name}.tsv").write_text("".join("\t".join(map(str.strip, pair)) + "\n" for pair in several), "utf-8")
    return {name: f"{name}.tsv" for name in texts}


def train(**options):
    task = Parallel(**options)
    return [tuple(each[:2]) for each in task.examples("train")], task


def test_each_filter_leaves_out_its_pairs_and_counts_them(files):
    kept, task = train(**files, filters=Filters())
    assert kept == KEPT
    assert task.dropped() == {
        "filters.length=100": 1, "filters.ratio=3.0": 2, "filters.letters=0.5": 2, "filters.overlap": 2, "filters.duplicates": 2,
    }  # fmt: skip
    for name in BAD:
        alone = dict.fromkeys(["length", "ratio", "letters"], None) | dict.fromkeys(["overlap", "duplicates"], False)
        alone[name] = getattr(Filters(), name)
        kept, task = train(**files, filters=Filters(**alone))
        assert task.dropped() == {key: len(BAD[name]) for key in task.dropped()} and len(task.dropped()) == 1
        assert len(kept) == sum(map(len, [KEPT, *BAD.values()])) - len(BAD[name])
    assert [len(list(task.examples(split))) for split in ("valid", "test")] == [2, 2]
    assert train(**files, filters=Filters(**dict.fromkeys(alone, None)))[0] == train(**files)[0]


def test_chinese_is_counted_by_characters(files):
    """In words by spaces, each of these would be one word."""
    Path("zh.tsv").write_text("a small dog sleeps\t一只小狗在睡觉\na dog\t一只非常非常小的狗\n", "utf-8")
    kept, task = train(train="zh.tsv", valid="zh.tsv", filters=Filters(overlap=False))
    assert (len(kept), task.dropped()) == (1, {"filters.ratio=3.0": 1})


def test_repeats_that_a_ratio_asks_for_stay(files):
    """A pair of two files stays in the first; each file stands as often as it should, at every reading."""
    Path("more.tsv").write_text("a cat\teine Katze\nmore\tmehr\nmore\tmehr\n", "utf-8")
    corpora = [Files("train.tsv", ratio=2), Files("more.tsv", ratio=3)]
    kept, task = train(train=corpora, valid="valid.tsv", test="test.tsv", filters=Filters())
    assert sorted(kept) == sorted([*KEPT * 2, *[("more", "mehr")] * 3])
    assert task.dropped()["filters.duplicates"] == 4
    assert [tuple(each[:2]) for each in task.examples("train")] == kept


def test_counts_reach_check_and_the_run(files, tmp_path):
    tiny = [
        "tokenizer=word",
        "model.d_model=8",
        "model.num_heads=2",
        "model.d_ff=8",
        "evaluate.metrics=[chrf]",
        "evaluate.best=chrf",
    ]
    task = f"task={json.dumps({'name': 'parallel', **files, 'filters': {'letters': None}})}"
    plan = plan_run(load_recipe("base", [task, *tiny]).runs()[0], create_registry()).require_sound("base")
    expected = {
        "task.filters.length=100": 1,
        "task.filters.ratio=3.0": 2,
        "task.filters.overlap": 2,
        "task.filters.duplicates": 2,
    }
    assert create(plan, tmp_path / "run", load_corpus(plan)).dropped == expected
    sentences = check_texts([plan])
    assert "2 examples are left out by task.filters.ratio=3.0" in sentences


def test_what_the_user_can_mend(files):
    Path("bad.tsv").write_text("7\t7\n", "utf-8")
    with pytest.raises(UserError, match=r"bad.tsv: no pair of texts in it that is left \(filters.letters=0.5\), but"):
        train(train="bad.tsv", valid="valid.tsv", filters=Filters(overlap=False))
    with pytest.raises(ValueError, match="must be above 0 and at most 1, or null, but is 2"):
        Parallel(**files, filters=Filters(letters=2))
    with pytest.raises(ValueError, match="`filters` is of a corpus; leave it out where `pairs` are the"):
        Parallel(pairs=[["a", "b"]], filters=Filters())
    wrong = load_recipe("base", ["task={name: parallel, train: train.tsv, valid: valid.tsv, filters: {ratios: 3}}"])
    problems = plan_run(wrong.runs()[0], create_registry()).problems
    assert "ratios" in str(problems)
