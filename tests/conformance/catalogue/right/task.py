"""Numbers backwards, their split decided by a hash of the source: the twin of mutants of a task."""

from paddle_tfm.protocols import Example, Task
from paddle_tfm.randomness import digest, generator


class Twin(Task):
    def __init__(self, size: int = 200):
        self.size, self.rng = size, generator("twin")

    def examples(self, split):
        rng, number = generator("twin", split), 0
        while number < self.size:
            words = [str(each) for each in rng.integers(100, size=rng.integers(1, 6))]
            source = " ".join(words)
            if split == {0: "test", 1: "valid"}.get(digest("twin", source) % 10, "train"):
                number += 1
                yield Example(source, " ".join(reversed(words)))
