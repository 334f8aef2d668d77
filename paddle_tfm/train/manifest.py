"""`manifest.json` of a checkpoint: its files, by which anybody can say whether it is whole; and from which checkpoint a
training resumes. Needs no Paddle."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from paddle_tfm.errors import UserError
from paddle_tfm.files import read_json, sha256, sync

FILE = "manifest.json"
STATE, WEIGHTS = "state.json", "model.safetensors"
OLD = ".old"  # behind the name of a checkpoint: the one before it


def write(folder: Path, step: int, identity: str) -> None:
    """Write the manifest of the files in `folder`, and wait until all of it is on the disk.

    Args:
        step: of the checkpoint. identity: the hash of the identity of the run that it is of.
    """
    files = {}
    for path in sorted(folder.iterdir()):
        sync(path)
        files[path.name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
    manifest = {"step": step, "identity": identity, "files": files}
    (folder / FILE).write_text(json.dumps(manifest, indent=1), "utf-8")
    sync(folder / FILE)
    sync(folder)


def damage(folder: Path, only: str | None = None) -> str | None:
    """A sentence on the first file of a checkpoint that is not as it was saved; None if it is whole, as far as can be
    said: one that was saved before there were manifests has none. only: the name of the one file that matters."""
    if not (folder / FILE).exists():
        return None if (folder / STATE).exists() else f"{folder / STATE}: no such file"
    try:
        files = read_json(folder / FILE, ("files",))["files"]
        for name, stored in files.items():
            if only in (None, name) and (
                sentence := _damage(folder / Path(name).name, stored["bytes"], stored["sha256"])
            ):
                return sentence
    except UserError as error:
        return str(error)
    except (AttributeError, KeyError, TypeError):
        return f"{folder / FILE}: damaged: it names no files"
    return None


def _damage(path: Path, size: int, digest: str) -> str | None:
    if not path.is_file():
        return f"{path}: no such file"
    if path.stat().st_size != size:
        return f"{path}: damaged: it has {path.stat().st_size:,} bytes, but {size:,} were saved"
    if sha256(path) != digest:
        return f"{path}: damaged: its content is not what was saved (its SHA-256 is another)"
    return None


def find(folder: Path) -> Path | None:
    """Where the checkpoint `folder` is: beside it, if a kill came between the two renames of a save; None: nowhere."""
    return next((path for path in versions(folder) if path.is_dir()), None)


def versions(folder: Path) -> tuple[Path, Path]:
    """Where a checkpoint is, and where the one before it is."""
    return folder, folder.with_name(folder.name + OLD)


def resume_point(checkpoints: Path, report: Callable[[str], None] = lambda text: None) -> Path | None:
    """The newest checkpoint of a run from which its training can resume; None where none was saved. `report` gets a
    sentence for one that is passed over.

    Raises:
        UserError: there are some, and none is whole.
    """
    newer: list[Path] = []
    wrong: list[str] = []
    for point in versions(checkpoints / "last"):
        if not point.is_dir():
            continue
        sentence = damage(point) or _lack(point, checkpoints, newer)
        if sentence is None:
            if wrong:
                step = read_json(point / STATE, ("step",))["step"]
                report(f"{'; '.join(wrong)}; it is passed over, and the training resumes from step {step:,}")
            return point
        newer.append(point)
        wrong.append(sentence)
    if wrong:
        raise UserError(f"{'; '.join(wrong)}; remove {checkpoints.parent} to train this run again")
    return None


def _lack(point: Path, checkpoints: Path, newer: list[Path]) -> str | None:
    """What the training lacks that would resume at `point`: the best weights so far, or those to be averaged. What will
    be written again, because it is of a later step, is not lacking."""
    try:
        state = read_json(point / STATE, ("step",))
    except UserError as error:
        return str(error)
    best = find(checkpoints / "best")
    sentence = f"{checkpoints / 'best'}: this checkpoint is gone" if best is None else damage(best, WEIGHTS)
    needed = state.get("best") is not None and not any(step > state["step"] for step in _best_steps(best, newer))
    if needed and sentence:
        return sentence
    for step in state.get("snapshots") or ():
        snapshot = find(checkpoints / f"step-{step}")
        if snapshot is None:
            return f"{checkpoints / f'step-{step}'}: this checkpoint is gone"
        if sentence := damage(snapshot, WEIGHTS):
            return sentence
    return None


def _best_steps(best: Path | None, newer: list[Path]) -> Iterator[int]:
    """The steps of the best checkpoints that are known of, whether they are whole or not."""
    for folder, key in [*([(best, "step")] if best else []), *((point, "best_step") for point in newer)]:
        state = _read(folder / STATE)
        if isinstance(state.get(key), int):
            yield state[key]


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except UserError:
        return {}
