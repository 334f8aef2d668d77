"""Which toolkit a model is of."""

from __future__ import annotations

from pathlib import Path

from paddle_tfm.errors import UserError
from paddle_tfm.imports.ctranslate2 import read_argos, read_ctranslate2
from paddle_tfm.imports.foreign import Foreign
from paddle_tfm.imports.marian import read_marian
from paddle_tfm.language import _


def read_model(path: Path, as_trained: bool = False) -> Foreign:
    """The model at `path`: an .argosmodel, a folder of CTranslate2, or Marian's.

    Raises:
        UserError: none is there that is known, or a file of it is damaged.
    """
    if not path.exists():
        raise UserError(_("{path}: no such file or folder").format(path=path))
    if path.suffix == ".argosmodel":
        return read_argos(path)
    if path.name == "model.bin" or (path / "model.bin").is_file():
        return read_ctranslate2(path if path.is_dir() else path.parent)
    return read_marian(path, as_trained)
