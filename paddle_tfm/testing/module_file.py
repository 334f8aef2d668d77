"""The module in a file that a user names."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.plugin_errors import FILE_MODULE


def load(path: Path):
    """The module in a file.

    Raises:
        UserError: there is no such file, or it cannot be imported.
    """
    if not path.is_file():
        raise UserError(_("{path}: no such file").format(path=path))
    name = f"{FILE_MODULE}{path.stem}_checked"
    while name in sys.modules and sys.modules[name].__file__ != str(path):  # a file of the same name elsewhere
        name += "_"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(_("{path} cannot be imported: Python has no loader for this file").format(path=path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))  # a learner's file imports its neighbours
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, or pytest's of a skipped module
        text = _("{path} cannot be imported: {name}: {others}")
        raise UserError(
            text.format(path=path, name=type(error).__name__, others=" ".join(str(error).split()))
        ) from error
    finally:
        sys.path.remove(str(path.parent))
    return module
