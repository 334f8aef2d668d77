"""Questions about a text, whose answers are names in it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from paddle_tfm.protocols import Example, Task
from paddle_tfm.randomness import generator
from paddle_tfm.validators import between, positive
from paddle_tfm_plugins.task._invented_names import person

ROLES = ("teacher", "doctor", "neighbour", "baker", "judge", "painter", "farmer", "pilot")
VERBS = (("helped", "help"), ("visited", "visit"), ("called", "call"), ("invited", "invite"))  # as told, as asked


class Questions(Task):
    """Our own short texts with a question, answered by the names that they hold: what copies words from a text can do.

    "Whom did the baker visit? The judge visited Tavin. The baker visited Brudola, Tina Vorun and Kesa. The baker helped
    Lasi." is answered "Brudola, Tina Vorun, Kesa". A text has `facts` sentences, each of a role and a verb, of which no
    two have both in common, and one to `names` people. Names of two or three syllables, one or two a person, are drawn
    out of five million, so that a vocabulary holds hardly any; one has to look at the right sentence, and to say each
    of its names once.

    Splits share no name: each belongs to test, valid or train (10%, 10%, 80%) by a hash of it and `data_seed`. A longer
    split begins with the shorter one.

    Options:
        facts: sentences of a text. names: people in a sentence, at most.

    Raises:
        ValueError: train, valid, test or names is not positive; facts is below 2, or above the pairs of role and verb.
    """

    def __init__(
        self,
        train: int = 20_000,
        valid: int = 500,
        test: int = 500,
        facts: int = 3,
        names: int = 4,
        data_seed: int = 1,
    ):
        positive(train=train, valid=valid, test=test, names=names)
        between(f"[2, {len(ROLES) * len(VERBS)}]", facts=facts)
        self.sizes = {"train": train, "valid": valid, "test": test}
        self.facts, self.names, self.data_seed = facts, names, data_seed

    def examples(self, split: str) -> Iterator[Example]:
        rng = generator(self.data_seed, "questions", split)
        for _example in range(self.sizes[split]):
            chosen = rng.choice(len(ROLES) * len(VERBS), self.facts, replace=False)
            facts = [(*divmod(int(each), len(VERBS)), self._people(rng, split)) for each in chosen]
            role, verb, people = facts[rng.integers(self.facts)]
            question = f"Whom did the {ROLES[role]} {VERBS[verb][1]}?"
            sentences = [f"The {ROLES[r]} {VERBS[v][0]} {_listed(several)}." for r, v, several in facts]
            yield Example(" ".join([question, *sentences]), ", ".join(people))

    def _people(self, rng: np.random.Generator, split: str) -> list[str]:
        return [person(rng, split, self.data_seed) for _ in range(rng.integers(1, self.names + 1))]


def _listed(people: list[str]) -> str:
    """A, B and C."""
    *others, last = people
    return f"{', '.join(others)} and {last}" if others else last
