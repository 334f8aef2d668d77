"""A module for each library: its `Training` does steps of the model, its `Search` decodes with the weights of a run.
Each is built from a folder with the `Workload` and the name of its side."""

from __future__ import annotations

from benchmarks.workload import STEPS


class Training:
    """A side that trains."""

    def first_loss(self) -> float:
        """The loss of the first batch, in nats per target token, without dropout."""
        raise NotImplementedError

    def step(self, number: int) -> None:
        """One step on batch `number`, modulo the number of batches; returns when it is complete."""
        raise NotImplementedError

    def facts(self) -> dict:
        """What the side says of itself once it is loaded."""
        return {"first_loss": self.first_loss()}

    def turn(self, job: str, number: int) -> None:
        """Some steps."""
        for step in range(number * STEPS, (number + 1) * STEPS):
            self.step(step)


class Search:
    """A side that decodes."""

    def facts(self) -> dict:
        """What the side says of itself once it is loaded."""
        return {}

    def turn(self, job: str, number: int = 0) -> list[list[int]]:
        """The ids of the best output of each sentence, without the end token."""
        raise NotImplementedError
