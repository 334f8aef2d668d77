"""Checkpoints: safetensors for numbers, JSON for the rest. Nothing in them is ever executed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import paddle
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from paddle_tfm.errors import UserError
from paddle_tfm.files import read_json


def save(
    folder: Path, model: paddle.nn.Layer, state: dict, parts: Mapping[str, Mapping[str, paddle.Tensor]] = {}
) -> None:
    """Write a checkpoint so that `folder` holds either the old one or the new one, whole, whenever we are killed.

    `state` goes to state.json, each of `parts` (tensors by name) to a file of its own beside the model's.
    """
    partial, old = folder.with_name(folder.name + ".partial"), folder.with_name(folder.name + ".old")
    exists(folder)  # puts back the one left aside, which may be the only one
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for part, tensors in {"model": model.state_dict(), **parts}.items():
        save_file({path: _array(tensor) for path, tensor in tensors.items()}, partial / f"{part}.safetensors")
    (partial / "state.json").write_text(json.dumps(state, indent=1), "utf-8")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _array(tensor: paddle.Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().numpy())


def exists(folder: Path) -> bool:
    """Whether a checkpoint is there; one left aside by a kill in the middle of `save` is put back."""
    old = folder.with_name(folder.name + ".old")
    if not folder.exists() and old.exists():
        old.rename(folder)
    return folder.is_dir()


def load_state(folder: Path, keys: Iterable[str] = ("step",)) -> dict:
    """The state that was saved with a checkpoint: `keys` and more.

    Raises:
        UserError: the file is missing, or broken.
    """
    return read_json(folder / "state.json", keys)


def load_model(folder: Path, model: paddle.nn.Layer) -> None:
    """Set the parameters and buffers of `model`.

    Raises:
        UserError: the file is missing or broken, or its names or shapes are not the model's.
    """
    path = folder / "model.safetensors"
    arrays, wanted = load_arrays(folder), model.state_dict()
    said = [
        f"it {verb} {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        for verb, names in (
            ("lacks", sorted(wanted.keys() - arrays.keys())),
            ("has, and the model has not,", sorted(arrays.keys() - wanted.keys())),
        )
        if names
    ]
    if said:
        raise UserError(f"{path} does not fit the recipe's model: {'; '.join(said)}")
    for name, tensor in wanted.items():
        if list(arrays[name].shape) != list(tensor.shape):
            raise UserError(
                f"{path}: {name} has shape {list(arrays[name].shape)}, but the model needs {list(tensor.shape)}"
            )
    set_arrays(model, arrays)


def load_arrays(folder: Path, part: str = "model") -> dict[str, np.ndarray]:
    """The arrays by name of a part of a checkpoint.

    Raises:
        UserError: the file is missing or broken.
    """
    path = folder / f"{part}.safetensors"
    try:
        return load_file(path)
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: not a safetensors file: {error}") from error


def load_part(folder: Path, part: str) -> dict[str, paddle.Tensor]:
    """The same as tensors."""
    return {name: paddle.to_tensor(array) for name, array in load_arrays(folder, part).items()}


def set_arrays(model: paddle.nn.Layer, arrays: Mapping[str, np.ndarray]) -> None:
    """Give the model these parameters and buffers."""
    for name, tensor in model.state_dict().items():
        tensor.set_value(arrays[name])
