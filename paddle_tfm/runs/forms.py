"""The JSON files of a run: `results.json`, `identity.json`, `about.json`, and `state.json` of its checkpoints; and the
form of a file whose fields are checked where it is read. Needs no Paddle."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from paddle_tfm.errors import UserError
from paddle_tfm.files import read_json
from paddle_tfm.language import _

RESULTS, IDENTITY, ABOUT = "results.json", "identity.json", "about.json"
NUM_SAMPLES = 3  # training examples in `about.json`
Count = Annotated[int, Field(ge=0, lt=2**63)]
WANTED = "must be a mapping"  # where pydantic's own sentence is of Python


class Form(BaseModel):
    """What a mapping may hold."""

    model_config = ConfigDict(strict=True)


class Progress(Form):
    """How far a training is: saved with every checkpoint, under these names.

    Args:
        step: optimizer steps so far. epoch, position: of the stream of batches. tokens: real target tokens so far.
        seconds: time of the optimizer steps; `wall_seconds` of everything.
        best: the rank of the best evaluation, `valid` its metrics, `caveats` what must stand beside them, `best_step`
            its step; `stale` counts those since.
        evaluated: whether the evaluation at `step`, if there is one, is done.
        snapshots: the steps whose weights are stored in checkpoints to be averaged.
    """

    step: Count = 0
    epoch: Count = 0
    position: Count = 0
    tokens: Count = 0
    seconds: float = 0.0
    wall_seconds: float = 0.0
    best: list[float] | None = None
    best_step: Count = 0
    valid: dict[str, float] = {}
    evaluated: bool = True
    stale: Count = 0
    snapshots: list[Count] = []
    caveats: dict[str, dict[str, Count]] = {}

    def improved(self, rank: list[float], metrics: Mapping[str, float], caveats: Mapping[str, Any]) -> bool:
        """Whether an evaluation is the best so far, by its rank; if so, `best`, `valid` and `caveats` are of it now."""
        better = self.best is None or rank > self.best
        if better:
            self.best, self.valid, self.caveats = rank, dict(metrics), dict(caveats)
        return better

    @property
    def tokens_per_second(self) -> float:
        """Real target tokens per second of training; 0 before the first step."""
        return self.tokens / self.seconds if self.seconds else 0.0


def read_form(path: Path, form: type[Form], keys: Iterable[str] = ()) -> dict[str, Any]:
    """The mapping that a file holds, as it is written there.

    Raises:
        UserError: it cannot be read, lacks one of `keys`, or is not of the form.
    """
    stored = read_json(path, keys)
    try:
        form.model_validate(stored)
    except ValidationError as error:
        raise _damaged(path, error) from error
    return stored


def _damaged(path: Path, error: ValidationError) -> UserError:
    """The sentence on the first field of a file that is not of its type."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return UserError(_("{path}: damaged: it lacks `{where}`").format(path=path, where=where))
    is_mapping = first["type"] in ("model_type", "dict_type")
    wanted = WANTED if is_mapping else first["msg"].replace("Input should be", "must be")
    return UserError(
        _("{path}: damaged: `{where}` {wanted}, but is {value}").format(
            path=path, where=where, wanted=wanted, value=reprlib.repr(first["input"])
        )
    )


def read_results(run: Path, keys: Iterable[str] = ()) -> dict[str, Any]:
    """The results of the run in a folder. Raises UserError: they cannot be read, or lack one of `keys`."""
    return read_json(run / RESULTS, keys)


def read_stored_identity(run: Path, keys: Iterable[str] = ()) -> dict[str, Any]:
    """From what the run in a folder was trained. Raises as `read_results`."""
    return read_json(run / IDENTITY, keys)


def read_about(run: Path) -> dict[str, Any]:
    """What a report says of a run beside its numbers: texts, machine, time; none of it changes a number. Empty where
    there is none, or where it is damaged: a report can do without."""
    try:
        return read_json(run / ABOUT)
    except UserError:
        return {}
