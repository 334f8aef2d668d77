"""The form of a JSON file: the type of each field, checked where the file is read; and the forms of `results.json` and
`identity.json`. Those of other files stand beside what reads them. Needs no Paddle."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from paddle_tfm.errors import UserError
from paddle_tfm.files import read_json
from paddle_tfm.language import _

RESULTS, IDENTITY = "results.json", "identity.json"
Count = Annotated[int, Field(ge=0, lt=2**63)]
WANTED = {  # by pydantic's name of the error, where its own sentence is of Python
    "too_short": "must have {min_length} entries or more",
    "too_long": "must have at most {max_length} entries",
    "model_type": "must be a mapping",
    "dict_type": "must be a mapping",
}
LARGEST = 1e150  # of a finite number: larger ones cannot be squared, nor many be added
Amount = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
Caveats = dict[str, dict[str, Count]]  # `paddle_tfm.caveats`: of what → counts


def is_countable(value: float) -> bool:
    """Whether a number can be counted with: it is not larger than LARGEST, unless it is infinite, or it is NaN."""
    return not LARGEST < abs(value) < math.inf


def _countable(value: float) -> float:
    if not is_countable(value):
        raise PydanticCustomError("countable", f"must be at most {LARGEST:g} in size, or infinite")
    return value


Score = Annotated[float, AfterValidator(_countable)]


class Form(BaseModel):
    """What a mapping may hold."""

    model_config = ConfigDict(strict=True)


class Decoding(Form):
    """How long the search of the test split took."""

    sentences: Count = 0
    tokens: Count = 0
    seconds: Amount = 0.0


class FurtherResults(Form):
    """A further test: of which texts, in what batches, and its scores."""

    texts: str = ""
    data: str = ""
    examples: Count = 0
    max_rows: Count | None = None
    padding: Count = 0
    max_length: Count | None = None
    drift: Score = 0.0
    changed_outputs: Count = 0
    scores: dict[str, Score] = {}


class Pieces(Form):
    """How the references of the final scores are cut: into how many pieces, and their hash."""

    number: Count = 0
    sha256: str = ""


class Continued(Form):
    """Where a finished run was given more steps: after how many, and the hash of its identity until then."""

    steps: Count
    identity: str


class Results(Form):
    """`results.json`. A score may be infinite, or NaN."""

    recipe: str = ""
    variant: str = ""
    size: str | None = None
    seed: int = 0
    data: str = ""
    steps: Count = 0
    parameters: Count = 0
    matrix_parameters: Count = 0
    tokens: Amount = 0
    seconds: Amount = 0.0
    wall_seconds: Amount = 0.0
    tokens_per_second: Amount = 0.0
    decoding: Decoding = Decoding()
    dropped: dict[str, Count] = {}
    diverged: str | None = None
    directions: dict[str, bool] = {}
    units: dict[str, str] = {}
    signatures: dict[str, str] = {}
    per_piece: list[str] = []
    pieces: Pieces = Pieces()
    valid: dict[str, Score] = {}
    test: dict[str, Score] = {}
    tests: dict[str, FurtherResults] = {}
    caveats: dict[str, Caveats] = {}  # of the scores of a split, or of `test@name`
    start: dict[str, Any] = {}  # `train.start.Start`
    continued: list[Continued] = []


class Identity(Form):
    """`identity.json`."""

    hash: str = ""
    recipe: str = ""
    components: dict[str, str] = {}
    data: dict[str, str] = {}
    paddle: str = ""
    blas: str = ""
    products: str = ""
    shards: Count = 0
    threads: Count = 0
    processes: Count = 0
    plugin_files: dict[str, str] = {}
    vocabulary: str = ""
    start: dict[str, Any] = {}
    continued: list[Continued] = []


def read_form(path: Path, form: type[Form], keys: Iterable[str] = ()) -> dict[str, Any]:
    """The mapping that a file holds, as it is written there.

    Raises:
        UserError: it cannot be read, lacks one of `keys`, or is not of the form.
    """
    stored = read_json(path, keys)
    try:
        form.model_validate(stored)
    except ValidationError as error:
        raise damaged(path, error) from error
    return stored


def damaged(path: Path, error: ValidationError) -> UserError:
    """The sentence on the first field of a file that is not of its type."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return UserError(_("{path}: damaged: it lacks `{where}`").format(path=path, where=where))
    wanted = WANTED.get(first["type"], first["msg"].replace("Input should be", "must be"))
    wanted = wanted.format(**first.get("ctx", {}))
    return UserError(
        _("{path}: damaged: `{where}` {wanted}, but is {value}").format(
            path=path, where=where, wanted=wanted, value=reprlib.repr(first["input"])
        )
    )


def read_results(run: Path, keys: Iterable[str] = ()) -> dict[str, Any]:
    """The results of the run in a folder; raises as `read_form` does."""
    return read_form(run / RESULTS, Results, keys)


def read_stored_identity(run: Path, keys: Iterable[str] = ()) -> dict[str, Any]:
    """From what the run in a folder was trained; raises as `read_form` does."""
    return read_form(run / IDENTITY, Identity, keys)
