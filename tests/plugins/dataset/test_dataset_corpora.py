"""The shipped datasets on the real corpora: sizes, hashes, and that nothing is in two splits."""

import os
import re

import pytest

from paddle_tfm.data import datasets
from paddle_tfm.protocols import SPLITS
from paddle_tfm_plugins.dataset.multi30k import Multi30k
from paddle_tfm_plugins.dataset.scan import Scan
from paddle_tfm_plugins.dataset.sigmorphon2020_g2p import Sigmorphon2020G2P
from paddle_tfm_plugins.dataset.tatoeba_en_zh import TatoebaEnZh

pytestmark = pytest.mark.skipif(
    not os.environ.get("PADDLE_TFM_DATA"), reason="needs the real corpora: PADDLE_TFM_DATA is not set"
)


def read(dataset):
    """The splits as lists of pairs; skips where files are not at hand."""
    if lacking := {file.name for file in dataset.files()} - {
        file.name for file in datasets.present(dataset, dataset.files())
    }:
        pytest.skip(f"PADDLE_TFM_DATA lacks {', '.join(sorted(lacking))}")
    return {split: [example[:2] for example in datasets.examples(dataset, split)] for split in SPLITS}


def sizes(splits):
    return [len(splits[split]) for split in SPLITS]


def test_multi30k():
    splits = read(Multi30k("de", "en"))
    assert sizes(splits) == [29_000, 1_014, 1_000]
    pair = (
        "Two young, White males are outside near many bushes.",
        "Zwei junge weiße Männer sind im Freien in der Nähe",
    )
    source, target = splits["train"][0]
    assert source.startswith(pair[1]) and target == pair[0]


@pytest.mark.reliability
def test_tatoeba():
    splits = read(TatoebaEnZh())
    assert sizes(splits) == [30_082, 965, 981] and sum(sizes(splits)) == 32_028
    english = [{re.sub(r"\W", "", source.casefold()) for source, _ in splits[split]} for split in SPLITS]
    assert not english[0] & english[1] and not english[0] & english[2] and not english[1] & english[2]
    known = {chinese for split in ("train", "valid") for _, chinese in splits[split]}
    assert sum(chinese in known for _, chinese in splits["test"]) == 197  # as its docstring says
    small = read(TatoebaEnZh(train=2000))
    assert sizes(small) == [2_000, 965, 981] and {*small["train"]} < {*splits["train"]}


@pytest.mark.parametrize("language", ["fre", "kor"])
def test_sigmorphon(language):
    splits = read(Sigmorphon2020G2P(language))
    assert sizes(splits) == [3_600, 450, 450]
    words = [{word for word, _ in splits[split]} for split in SPLITS]
    assert not words[0] & words[1] and not words[0] & words[2] and not words[1] & words[2]


@pytest.mark.parametrize(("split", "train", "test"), [("simple", 16_728, 4_182), ("length", 16_990, 3_920)])
def test_scan(split, train, test):
    splits = read(Scan(split))
    assert len(splits["train"]) + len(splits["valid"]) == train and len(splits["test"]) == test
    assert not {*splits["train"]} & {*splits["valid"]}
    assert len(splits["valid"]) == {"simple": 839, "length": 838}[split]
    if split == "length":
        longest, shortest = (f(len(t.split()) for _, t in splits[s]) for f, s in ((max, "train"), (min, "test")))
        assert (longest, shortest) == (22, 24)  # as Lake and Baroni 2018 say of it


def test_scan_cut_off_at_26():
    splits, simple = read(Scan(cutoff=26)), read(Scan())
    assert sizes(splits) == [17_391, 895, 2_624]
    lengths = {split: [len(target.split()) for _, target in splits[split]] for split in SPLITS}
    assert max(lengths["train"]) == max(lengths["valid"]) == 26 < min(lengths["test"]) and max(lengths["test"]) == 48
    both = [sorted(pair for pairs in of.values() for pair in pairs) for of in (splits, simple)]
    assert both[0] == both[1] and len({*both[0]}) == 20_910


@pytest.mark.parametrize("cls", [Multi30k, TatoebaEnZh, Scan, Sigmorphon2020G2P])
def test_every_file_at_hand_has_its_hash_and_size(cls):
    files = datasets.present(cls, cls.catalogue())
    if not files:
        pytest.skip(f"PADDLE_TFM_DATA has no file of {cls.folder}")
    for file in files:
        path = datasets.folder(cls) / file.name
        if file.sha256 is not None:
            assert (datasets.sha256(path), path.stat().st_size) == (file.sha256, file.size)
