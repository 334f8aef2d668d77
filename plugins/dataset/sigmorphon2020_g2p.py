"""Grapheme to phoneme in fifteen languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

from paddle_tfm.data.pairs import Files, pairs
from paddle_tfm.protocols import Dataset, Example, RemoteFile
from paddle_tfm.validators import one_of
from paddle_tfm_plugins.dataset._upstream import github

LANGUAGES = {
    "ady": "Adyghe",
    "arm": "Armenian",
    "bul": "Bulgarian",
    "dut": "Dutch",
    "fre": "French",
    "geo": "Georgian",
    "gre": "Modern Greek",
    "hin": "Hindi",
    "hun": "Hungarian",
    "ice": "Icelandic",
    "jpn": "Japanese hiragana",
    "kor": "Korean",
    "lit": "Lithuanian",
    "rum": "Romanian",
    "vie": "Vietnamese",
}
COMMIT = "3d9bb3658b6a964ccd127e2a6781665262516bf6"
HASHES_AND_SIZES = {  # SHA-256, bytes
    "fre_dev": ("eb2b3fb761b02591a93981c448c6c7972da0499fd0fb1d7a0b60142463f6b355", 9925),
    "fre_test": ("cd75ca22c697f93e23d10898a87a86e1bc08d0d4eb318946f28e085cd1aca9a8", 9919),
    "fre_train": ("fcc1c1c19a19381105662b412e8de1a143802da40fb401dd3cc452bc935128a6", 79465),
    "gre_dev": ("bac8a18261aa39e125db95423cc33dfaa60683d72eb2b0bb933f2f66b913c7a9", 15616),
    "gre_test": ("a10265ed5370a687f2bc840d5ac7338c53b36b044d71e2bcfa0b359094f9fd2f", 14904),
    "gre_train": ("acc3450422d1d44e5d596d6b5092919ebf5e0f8a26ddde4ccac7aa9dec1e0996", 122366),
    "ice_dev": ("5054f1051521f83acf137e918445052cc8702937131a7f7dac7b2b7dad6f78e4", 10926),
    "ice_test": ("1da20f2fd807b797a6c5b6388e34253d8f874fa359435566632c3a058c80f56c", 10722),
    "ice_train": ("d3729c6306c6b20b873b1b8e94bc1fa3b70dce7f8c2e0179ad3a434c8803f2ef", 86103),
    "kor_dev": ("0bf3b0676254dde2f087283f39f4a2f0ef2377000d0317be9c4b6cc8ef9ea23e", 12854),
    "kor_test": ("65792f869e6426358b143aac664d14af6967f088513d1c34eff3ecbc6555024e", 13234),
    "kor_train": ("c0e509d5c604df2bb0d899fec7825985e2d48f6cbb7238b1cde5ab408716071f", 103374),
}


class Sigmorphon2020G2P(Dataset):
    """Words of one of fifteen languages with their pronunciation: 3,600 to train, 450 to validate, 450 to test.

    `language` is the shared task's name: ady, arm, bul, dut, fre, geo, gre, hin, hun, ice, jpn, kor, lit, rum or vie.
    The source is the word, the target its phones with spaces between them: "hockey" → "ɔ k ɛ".

    The hashes of French, Greek, Icelandic and Korean are known; those of the others are taken from the first copy.

    Source: Gorman et al., "The SIGMORPHON 2020 Shared Task on Multilingual Grapheme-to-Phoneme Conversion", 2020
    (aclanthology.org/2020.sigmorphon-1.2), task 1.
    """

    folder = "sigmorphon2020-g2p"
    home = "https://github.com/sigmorphon/2020"
    licence = "CC BY-SA (WikiPron, out of Wiktionary)"
    citation = "Gorman et al. 2020, aclanthology.org/2020.sigmorphon-1.2"

    def __init__(self, language: str = "fre"):
        one_of(LANGUAGES, language=language)
        self.language = language

    @classmethod
    def catalogue(cls) -> list[RemoteFile]:
        return [_file(language, part) for language, part in product(LANGUAGES, ("train", "dev", "test"))]

    def files(self) -> list[RemoteFile]:
        return [_file(self.language, part) for part in ("train", "dev", "test")]

    def read(self, split: str, paths: Mapping[str, Path]) -> Iterator[Example]:
        part = {"valid": "dev"}.get(split, split)
        return (Example(*pair) for pair in pairs(Files(str(paths[f"{self.language}_{part}.tsv"]))))


def _file(language: str, part: str) -> RemoteFile:
    key = f"{language}_{part}"
    urls = github("sigmorphon/2020", COMMIT, f"task1/data/{part}/{key}.tsv")
    return RemoteFile(f"{key}.tsv", urls, *HASHES_AND_SIZES.get(key, ()))
