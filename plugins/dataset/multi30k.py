"""Multi30k: captions of images in four languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

from paddle_tfm.data.pairs import Files, pairs
from paddle_tfm.language import _
from paddle_tfm.protocols import Dataset, Example, RemoteFile
from paddle_tfm.validators import one_of
from paddle_tfm_plugins.dataset._upstream import github

LANGUAGES = ("en", "de", "fr", "cs")
TESTS = {
    "test_2016_flickr": LANGUAGES,
    "test_2017_flickr": ("en", "de", "fr"),
    "test_2017_mscoco": ("en", "de", "fr"),
    "test_2018_flickr": LANGUAGES,
}
HASHES_AND_SIZES = {  # SHA-256, bytes
    "train.en": ("d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f", 568929),
    "train.de": ("726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6", 637044),
    "val.en": ("14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28", 21650),
    "val.de": ("f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a", 24681),
    "test_2016_flickr.en": ("611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9", 21077),
    "test_2016_flickr.de": ("9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8", 22890),
}
# The commit that brought each file. train.en was changed once since, so that it comes from the branch, and its hash
# says whether it is the one.
COMMITS = {
    "train.en": "master",
    "train.cs": "97e85b0dfa1ebb401cb68a9fefa2eab90d8d5dfa",
    "val.cs": "ea6abd96a016eda24a5cc0d9caeb6ee1a0b35194",
    "test_2016_flickr.cs": "97e85b0dfa1ebb401cb68a9fefa2eab90d8d5dfa",
    "test_2018_flickr.en": "c60773c2a3db82db0e05655b3d01cf391e810800",
    "test_2018_flickr.de": "c40b37b23d6387214f8ab37335b5a8672b9745f2",
    "test_2018_flickr.fr": "c40b37b23d6387214f8ab37335b5a8672b9745f2",
    "test_2018_flickr.cs": "c40b37b23d6387214f8ab37335b5a8672b9745f2",
}
INITIAL_COMMIT = "c9be912dc05a3ebf9ae5bb5f7f58c1791cda43ab"


class Multi30k(Dataset):
    """Captions of Flickr images, English with German, French or Czech: the small benchmark of translation.

    29,000 pairs to train and 1,014 to validate, as written (not tokenized); tests of 1,000 pairs (`test_2017_mscoco`:
    461; `test_2018_flickr`: 1,071). Any two of the languages `source` and `target` may be paired: line n of every file
    is the same image. `test` chooses the test set; those of 2017 have no Czech.

    The hashes of the English and German files are known up to 2016; those of the others are taken from the first copy.

    Source: Elliott et al., "Multi30K: Multilingual English-German Image Descriptions", 2016, arXiv:1605.00459.
    """

    folder = "multi30k"
    home = "https://github.com/multi30k/dataset"
    licence = "research use; see its README"
    citation = (
        "Elliott et al. 2016, arXiv:1605.00459; tests: Elliott et al. 2017, arXiv:1710.07177; Barrault et al. 2018"
    )

    def __init__(self, source: str = "en", target: str = "de", test: str = "test_2016_flickr"):
        one_of(LANGUAGES, source=source, target=target)
        one_of(TESTS, test=test)
        self.languages = source, target
        self.test = test
        if source == target:
            text = _("`target` must be another language than `source`, but both are '{source}'")
            raise ValueError(text.format(source=source))
        for option, language in (("source", source), ("target", target)):
            if language not in TESTS[test]:
                text = _("`{option}`: {test} has no '{language}', only {known}")
                raise ValueError(text.format(option=option, test=test, language=language, known=", ".join(TESTS[test])))

    @classmethod
    def catalogue(cls) -> list[RemoteFile]:
        training = product(("train", "val"), LANGUAGES)
        tests = ((name, language) for name, languages in TESTS.items() for language in languages)
        return [_file(name, language) for name, language in (*training, *tests)]

    def files(self) -> list[RemoteFile]:
        return [_file(name, language) for name, language in product(("train", "val", self.test), self.languages)]

    def read(self, split: str, paths: Mapping[str, Path]) -> Iterator[Example]:
        name = {"train": "train", "valid": "val", "test": self.test}[split]
        files = [str(paths[f"{name}.{language}.gz"]) for language in self.languages]
        return (Example(*pair) for pair in pairs(Files(files)))


def _file(name: str, language: str) -> RemoteFile:
    key = f"{name}.{language}"
    path = f"data/task1/raw/{key}.gz"
    return RemoteFile(
        f"{key}.gz", github("multi30k/dataset", COMMITS.get(key, INITIAL_COMMIT), path), *HASHES_AND_SIZES.get(key, ())
    )
