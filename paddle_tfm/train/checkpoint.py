"""Checkpoints: safetensors for arrays, JSON for the rest. Loading one executes no code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import paddle
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from paddle_tfm.errors import CutShort, UserError
from paddle_tfm.files import PARTIAL, naming, sync
from paddle_tfm.train import manifest


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
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for part, tensors in {"model": model.state_dict(), **parts}.items():
            _write_arrays(partial / f"{part}.safetensors", tensors)
        with naming(partial):
            (partial / manifest.STATE).write_text(json.dumps(state, indent=1), "utf-8")
            manifest.write(partial, state["step"], identity)
        _take_name(partial, folder, keep_old)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CutShort(
            f"{folder}: the checkpoint of step {state['step']:,} was not saved: {reason}{_left(folder)}"
        ) from error


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
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    partial.rename(folder)
    sync(folder.parent)
    if not keep_old:
        shutil.rmtree(old, ignore_errors=True)


def _left(folder: Path) -> str:
    there = manifest.find(folder)
    if there is None:
        return ""
    return f"; the one before it, of step {load_state(there)['step']:,}, is whole, and `--resume` continues from it"


def _array(tensor: paddle.Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().numpy())


def existing(folder: Path, run: Path) -> Path:
    """Where the checkpoint `folder` of the run in the folder `run` is.

    Raises:
        UserError: it is gone, or damaged.
    """
    there = manifest.find(folder)
    sentence = f"{folder}: this checkpoint is gone" if there is None else manifest.damage(there, manifest.WEIGHTS)
    if there is None or sentence:
        raise UserError(f"{sentence}; remove {run} to train this run again")
    return there


def load_state(folder: Path, keys: Iterable[str] = ("step",)) -> dict:
    """The state that was saved with a checkpoint: `manifest.read_state`."""
    return manifest.read_state(folder, keys)


def load_model(folder: Path, model: paddle.nn.Layer) -> None:
    """Set the parameters and buffers of `model`.

    Raises:
        UserError: the file is missing or broken, or its names or shapes are not the model's.
    """
    path = folder / manifest.WEIGHTS
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
        if (dtype := str(arrays[name].dtype)) != (needed := str(tensor.dtype).removeprefix("paddle.")):
            raise UserError(f"{path}: {name} holds numbers of the type {dtype}, but the model needs {needed}")
    set_arrays(model, arrays)


def require_width(folder: Path, d_model: int) -> None:
    """Refuse weights of which none has the width of a model, before a model of that width takes memory.

    Raises:
        UserError: the file is missing or broken, or its weights are of another width.
    """
    path = folder / manifest.WEIGHTS
    with _reading(path), safe_open(path, "numpy") as file:
        shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118 - no mapping
    if not any(d_model in shape for shape in shapes):
        raise UserError(f"{path} does not fit the recipe's model: no tensor's shape has its d_model, {d_model}")


def load_arrays(folder: Path, part: str = "model") -> dict[str, np.ndarray]:
    """The arrays of one part of a checkpoint, by name.

    Raises:
        UserError: the file is missing or broken.
    """
    path = folder / f"{part}.safetensors"
    with _reading(path):
        return load_file(path)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
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
