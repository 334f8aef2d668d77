"""What the shipped datasets list and refuse, and how they split; on a few lines of our own."""

import gzip
import re
from itertools import pairwise

import pytest

from paddle_tfm import create_registry
from paddle_tfm.data import datasets
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.protocols import SPLITS
from paddle_tfm_plugins.dataset import scan
from paddle_tfm_plugins.dataset.multi30k import Multi30k
from paddle_tfm_plugins.dataset.scan import Scan
from paddle_tfm_plugins.dataset.sigmorphon2020_g2p import Sigmorphon2020G2P
from paddle_tfm_plugins.dataset.tatoeba_en_zh import split_of

ALL = [entry for entry in create_registry() if entry.kind == "dataset"]


def each_dataset():
    return pytest.mark.parametrize("cls", [entry.load() for entry in ALL], ids=[entry.name for entry in ALL])


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("PADDLE_TFM_DATA", str(tmp_path))
    return tmp_path


def write(path, *lines):
    path.parent.mkdir(exist_ok=True)
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


# ------------------------------------------------------------------------------------------------- what every one has


@each_dataset()
def test_each_file_has_addresses_at_a_fixed_commit_or_a_hash(cls):
    catalogue = cls.catalogue()
    assert len({file.name for file in catalogue}) == len(catalogue)
    for file in catalogue:
        assert "/" not in file.name
        assert all(url.startswith("https://") and url.endswith(f"/{file.name}") for url in file.urls)
        fixed = all(re.search(r"[/@][0-9a-f]{40}/", url) for url in file.urls)
        assert fixed or file.sha256, file
        assert file.sha256 is None or (re.fullmatch(r"[0-9a-f]{64}", file.sha256) and file.size > 0)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"name": "multi30k", "source": "eng"},
            "`source` must be one of en, de, fr, cs, but is 'eng'; did you mean 'en'?",
        ),
        ({"name": "multi30k", "target": "en"}, "`target` must be another language than `source`, but both are 'en'"),
        (
            {"name": "multi30k", "target": "cs", "test": "test_2017_flickr"},
            "`target`: test_2017_flickr has no 'cs', only en, de, fr",
        ),
        ({"name": "multi30k", "test": "test_2016"}, "did you mean 'test_2016_flickr'?"),
        ({"name": "tatoeba-en-zh", "source": "zh"}, "`target` must be another language than `source`"),
        ({"name": "tatoeba-en-zh", "target": "cn"}, "`target` must be one of en, zh, but is 'cn'"),
        ({"name": "sigmorphon2020-g2p", "language": "kro"}, "did you mean 'kor'?"),
        ({"name": "scan", "split": "lenght"}, "did you mean 'length'?"),
        ({"name": "scan", "split": "length", "cutoff": 26}, "`cutoff` splits the commands of `split: simple` again"),
        (
            {"name": "scan", "cutoff": 48},
            "`cutoff` must be from 1 to 47, as the longest output has 48 actions, but is 48",
        ),
    ],
)
def test_wrong_options(spec, text):
    with pytest.raises(RecipeError) as caught:
        create_registry().build("dataset", spec, "task.dataset")
    assert text in str(caught.value) and "task.dataset" in str(caught.value)


# ------------------------------------------------------------------------------------------------------------- multi30k


def test_multi30k_pairs_any_two_languages(data):
    assert len(Multi30k.catalogue()) == 8 + 4 + 3 + 3 + 4
    dataset = Multi30k("fr", "cs", "test_2018_flickr")
    assert [file.name for file in dataset.files()] == [
        f"{name}.{language}.gz" for name in ("train", "val", "test_2018_flickr") for language in ("fr", "cs")
    ]
    for file in dataset.files():
        write(data / "multi30k" / file.name, file.name, "")
    for split, name in zip(SPLITS, ("train", "val", "test_2018_flickr")):
        assert [tuple(each)[:2] for each in datasets.examples(dataset, split)] == [(f"{name}.fr.gz", f"{name}.cs.gz")]


def test_multi30k_says_which_file_is_short(data):
    dataset = Multi30k("fr", "cs")
    for i, file in enumerate(dataset.files()):
        write(data / "multi30k" / file.name, *"ab"[: 1 + i % 2])
    with pytest.raises(UserError, match=r"train\.fr\.gz has 1 lines, but .*train\.cs\.gz has 2"):
        list(datasets.examples(dataset, "train"))


# -------------------------------------------------------------------------------------------------------------- tatoeba


def test_tatoeba_keeps_what_differs_in_case_and_punctuation_together():
    for same in (["Hi.", "hi!", " HI"], ["I'm here.", "Im here", "I’m HERE?"]):
        assert all(split_of(a) == split_of(b) for a, b in pairwise(same))
    counts = [sum(split_of(f"sentence {i}") == split for i in range(6400)) for split in SPLITS]
    assert [round(count / 200) for count in counts] == [30, 1, 1]


# ------------------------------------------------------------------------------------------------------------------ g2p


def test_sigmorphon_reads_the_files_of_a_language(data):
    assert len(Sigmorphon2020G2P.catalogue()) == 45
    dataset = Sigmorphon2020G2P("vie")
    assert dataset.files()[1].urls[0].endswith("/task1/data/dev/vie_dev.tsv")
    for file in dataset.files():
        write(data / "sigmorphon2020-g2p" / file.name, f"{file.name}\ta b")
    assert [next(datasets.examples(dataset, split))[:2] for split in SPLITS] == [
        (f"vie_{part}.tsv", "a b") for part in ("train", "dev", "test")
    ]


# ----------------------------------------------------------------------------------------------------------------- SCAN


def scan_files(data, split, train, test=("IN: jump OUT: I_JUMP",)):
    write(data / "scan" / f"tasks_train_{split}.txt", *train)
    write(data / "scan" / f"tasks_test_{split}.txt", *test)
    return Scan(split)


def commands(dataset, split):
    return [example.source for example in datasets.examples(dataset, split)]


def test_scan_has_its_upstream_splits():
    assert len(scan.SPLITS) == 2 + 2 + 4 + 4 + 55 + 7 + 30
    assert len(Scan.catalogue()) == 2 * len(scan.SPLITS)
    url = {file.name: file.urls[0] for file in Scan.catalogue()}
    folder = "add_prim_split/with_additional_examples"
    assert f"/{folder}/" in url["tasks_train_addprim_complex_jump_num32_rep5.txt"]
    assert "/few_shot_split/" in url["tasks_test_fewshot_num1024_rep1.txt"]
    assert "/simple_split/size_variations/" in url["tasks_train_simple_p64.txt"]


def test_scan_holds_out_whole_commands_for_valid(data):
    lines = [f"IN: walk {i} OUT: I_WALK" for i in range(2000)]
    dataset = scan_files(data, "template_right", lines * 2)
    train, valid = commands(dataset, "train"), commands(dataset, "valid")
    assert sorted(train + valid) == sorted([f"walk {i}" for i in range(2000)] * 2)
    assert not {*train} & {*valid}
    assert 0.04 < len(valid) / 4000 < 0.06
    assert commands(dataset, "test") == ["jump"]


@pytest.mark.parametrize(
    ("split", "added"),
    [
        ("addprim_jump", "jump"),
        ("addprim_turn_left", "turn left"),
        ("addprim_complex_jump_num1_rep1", "jump"),
        ("fewshot_num1_rep1", "around right"),
        ("filler_num1", "around right"),
    ],
)
def test_scan_never_holds_out_what_a_split_adds(data, split, added):
    lines = [f"IN: {added} {i} OUT: I_WALK" for i in range(500)] + [f"IN: walk {i} OUT: I_WALK" for i in range(500)]
    dataset = scan_files(data, split, lines)
    assert sum(added in command for command in commands(dataset, "train")) == 500
    valid = commands(dataset, "valid")
    assert valid and not any(added in command for command in valid)


def test_scan_complains_with_file_and_line(data):
    dataset = scan_files(data, "template_right", ["IN: walk OUT: I_WALK", "walk I_WALK"])
    with pytest.raises(UserError, match=r"tasks_train_template_right\.txt, line 2: not `IN: command OUT: actions`"):
        list(datasets.examples(dataset, "train"))
