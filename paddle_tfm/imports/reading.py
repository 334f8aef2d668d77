"""Which toolkit a model is of."""

from __future__ import annotations

from pathlib import Path

from paddle_tfm.imports.foreign import Foreign
from paddle_tfm.imports.marian import read_marian


def read_model(path: Path, as_trained: bool = False) -> Foreign:
    """The model at `path`.

    Raises:
        UserError: none is there that is known, or a file of it is damaged.
    """
    return read_marian(path, as_trained)
