"""Checkpoints: safetensors for arrays, JSON for the rest. Loading one executes no code."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from paddle_tfm.errors import CutShort, UserError
from paddle_tfm.files import PARTIAL, naming, remove, sync
from paddle_tfm.language import _
from paddle_tfm.runs import manifest


def save(
    folder: Path,
    model: paddle.nn.Layer,
    state: dict,
    parts: Mapping[str, Mapping[str, paddle.Tensor]] = {},
    identity: str = "",
    keep_old: bool = False,
) -> None:
    """Write a checkpoint. If the process is killed or the machine stops, `manifest.find(folder)` is either the old or
    the new one, complete.

    It is written beside `folder`, file by file waited for, the manifest last; then it takes the name. The old one stays
    beside it if `keep_old`.

    Args:
        state: written to state.json; has `step`. parts: tensors by name, each part to its own safetensors file.
        identity: the hash of the run's.
    Raises:
        CutShort: it could not be written; the old one is as it was.
    """
    partial = folder.with_name(folder.name + PARTIAL)
    try:
        remove(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for part, tensors in {"model": model.state_dict(), **parts}.items():
            _write_arrays(partial / f"{part}.safetensors", tensors)
        with naming(partial):
            (partial / manifest.STATE).write_text(json.dumps(state, indent=1), "utf-8")
            manifest.write(partial, state["step"], identity)
        _take_name(partial, folder, keep_old)
    except (OSError, SafetensorError) as error:
        remove(partial, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) else str(error)
        sentence = f"the checkpoint of step {state['step']:,} was not saved: {reason}; the one before it is as it was"
        raise CutShort(f"{folder}: {sentence}") from error


def _write_arrays(path: Path, tensors: Mapping[str, paddle.Tensor]) -> None:
    """Write tensors to a file. safetensors puts one in its place that only its owner may read (mode 0600); it gets the
    mode of every other file that is made here."""
    path.touch()
    mode = path.stat().st_mode
    save_file({name: _array(tensor) for name, tensor in tensors.items()}, path)
    path.chmod(mode)


def _take_name(partial: Path, folder: Path, keep_old: bool) -> None:
    """Rename a checkpoint that is complete to `folder`, and what is there to the name of the old one."""
    _, old = manifest.versions(folder)
    if folder.exists():
        remove(old, ignore_errors=True)
        folder.rename(old)
    partial.rename(folder)
    sync(folder.parent)
    if not keep_old:
        remove(old, ignore_errors=True)


def _array(tensor: paddle.Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().numpy())


def existing(folder: Path, run: Path) -> Path:
    """Where the checkpoint `folder` of the run in the folder `run` is.

    Raises:
        UserError: it is gone, or damaged.
    """
    there, sentence = manifest.find(folder), manifest.lost(folder)
    if there is None or sentence:
        raise UserError(_("{sentence}; remove {run} to train this run again").format(sentence=sentence, run=run))
    return there


def load_model(folder: Path, model: paddle.nn.Layer) -> None:
    """Set the parameters and buffers of `model`.

    Raises:
        UserError: the file is missing or broken, or its names, shapes or types are not the model's.
    """
    path, tensors = folder / manifest.WEIGHTS, model.state_dict()
    with _open(path) as file:
        _require_same_names(path, set(file.keys()), tensors.keys())
        for name, tensor in tensors.items():
            array, dtype = file.get_tensor(name), str(tensor.dtype).removeprefix("paddle.")
            if list(array.shape) != list(tensor.shape):
                text = _("{path}: {name} has shape {shape}, but the model needs {needed}")
                raise UserError(text.format(path=path, name=name, shape=[*array.shape], needed=[*tensor.shape]))
            if array.dtype.name != dtype:
                text = _("{path}: {name} holds numbers of the type {dtype}, but the model needs {needed}")
                raise UserError(text.format(path=path, name=name, dtype=array.dtype, needed=dtype))
            tensor.set_value(array)


def _require_same_names(path: Path, names: Set[str], needed: Set[str]) -> None:
    differences = [
        f"the {side} lacks {lacking[0]}" + (f" and {len(lacking) - 1} more" if len(lacking) > 1 else "")
        for side, lacking in (("file", sorted(needed - names)), ("model", sorted(names - needed)))
        if lacking
    ]
    if differences:
        text = _("{path} does not fit the recipe's model: {differences}")
        raise UserError(text.format(path=path, differences="; ".join(differences)))


def load_arrays(folder: Path, part: str = "model") -> dict[str, np.ndarray]:
    """The arrays of one part of a checkpoint, by name.

    Raises:
        UserError: the file is missing or broken.
    """
    with _open(folder / f"{part}.safetensors") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)


def shapes(folder: Path) -> dict[str, list[int]]:
    """name → shape of the weights of a checkpoint, which are not read. Raises as `load_arrays`."""
    with _open(folder / manifest.WEIGHTS) as file:
        return {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118 (it is no mapping)


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, "numpy") as file:
            yield file
    except FileNotFoundError as error:
        raise UserError(_("{path}: no such file").format(path=path)) from error
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:  # a type that NumPy has not
        raise UserError(_("{path}: not a safetensors file: {error}").format(path=path, error=error)) from error


def load_part(folder: Path, part: str) -> dict[str, paddle.Tensor]:
    """The tensors of one part of a checkpoint, by name. Raises as `load_arrays`."""
    return {name: paddle.to_tensor(array) for name, array in load_arrays(folder, part).items()}


def set_arrays(model: paddle.nn.Layer, arrays: Mapping[str, np.ndarray]) -> None:
    """Set the parameters and buffers of `model` to `arrays`."""
    for name, tensor in model.state_dict().items():
        tensor.set_value(arrays[name])
