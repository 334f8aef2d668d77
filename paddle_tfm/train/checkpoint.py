"""Checkpoints: safetensors for arrays, JSON for the rest. Loading one executes no code."""

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
    """Write a checkpoint. If the process is killed, `folder` holds either the old or the new one, complete.

    `state` is written to state.json, each of `parts` (tensors by name) to its own safetensors file.
    """
    partial, old = folder.with_name(folder.name + ".partial"), folder.with_name(folder.name + ".old")
    exists(folder)  # restores `old` if a kill left it, since it may be the only complete checkpoint
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
    """Whether `folder` holds a checkpoint; one that a kill during `save` left under its temporary name is restored."""
    old = folder.with_name(folder.name + ".old")
    if not folder.exists() and old.exists():
        old.rename(folder)
    return folder.is_dir()


def existing(folder: Path, run: Path) -> Path:
    """`folder`, in which a checkpoint of the folder `run` must be.

    Raises:
        UserError: it is gone.
    """
    if not exists(folder):
        raise UserError(f"{folder}: this checkpoint is gone; remove {run} to train this run again")
    return folder


def snapshot(step: int | str) -> str:
    """The name of the checkpoint of the weights at a step, which wait to be averaged."""
    return f"step-{step}"


def keep_snapshots(folder: Path, steps: Iterable[int]) -> None:
    """Remove the weights of all steps but `steps` from a run's checkpoints, since no average needs them."""
    names = [snapshot(step) for step in steps]
    for each in folder.glob(snapshot("*")):
        if each.name not in names:
            shutil.rmtree(each, ignore_errors=True)


def load_state(folder: Path, keys: Iterable[str] = ("step",)) -> dict:
    """The state that was saved with a checkpoint; it must have `keys`, and may have more.

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
    arrays, tensors = load_arrays(folder), model.state_dict()
    differences = [
        f"the {side} lacks {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        for side, names in (
            ("file", sorted(tensors.keys() - arrays.keys())),
            ("model", sorted(arrays.keys() - tensors.keys())),
        )
        if names
    ]
    if differences:
        raise UserError(f"{path} does not fit the recipe's model: {'; '.join(differences)}")
    for name, tensor in tensors.items():
        if list(arrays[name].shape) != list(tensor.shape):
            raise UserError(
                f"{path}: {name} has shape {list(arrays[name].shape)}, but the model needs {list(tensor.shape)}"
            )
    set_arrays(model, arrays)


def load_arrays(folder: Path, part: str = "model") -> dict[str, np.ndarray]:
    """The arrays of one part of a checkpoint, by name.

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
    """The tensors of one part of a checkpoint, by name; raises as `load_arrays`."""
    return {name: paddle.to_tensor(array) for name, array in load_arrays(folder, part).items()}


def set_arrays(model: paddle.nn.Layer, arrays: Mapping[str, np.ndarray]) -> None:
    """Set the parameters and buffers of `model` to `arrays`."""
    for name, tensor in model.state_dict().items():
        tensor.set_value(arrays[name])
