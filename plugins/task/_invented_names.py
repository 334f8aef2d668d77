"""Names that are made up of syllables, some millions of them."""

from __future__ import annotations

import numpy as np

from paddle_tfm.randomness import digest

ONSETS = (*"bdfgjklmnprstvwz", "br", "dr", "kl", "tr")
VOWELS = tuple("aeiou")
CODAS = ("", "n", "r", "s", "l")


def person(rng: np.random.Generator, split: str, data_seed: int) -> str:
    """One or two names of the split, as a person has."""
    return " ".join(_name(rng, split, data_seed) for _ in range(rng.integers(1, 3)))


def _name(rng: np.random.Generator, split: str, data_seed: int) -> str:
    """A name of two or three syllables. Each belongs to test, valid or train (10%, 10%, 80%) by a hash of it."""
    while True:
        syllables = [pick(rng, ONSETS) + pick(rng, VOWELS) for _ in range(rng.integers(2, 4))]
        name = ("".join(syllables) + pick(rng, CODAS)).capitalize()
        if split == {0: "test", 1: "valid"}.get(digest(data_seed, "name", name) % 10, "train"):
            return name


def pick(rng: np.random.Generator, choices: tuple[str, ...]) -> str:
    """One of them."""
    return choices[rng.integers(len(choices))]
