"""`manifest.json` of a checkpoint, and of a finished run: its files, by which anybody can say whether it is whole; and
from which checkpoint a training resumes, and which of them stay. Needs no Paddle."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from paddle_tfm.errors import UserError
from paddle_tfm.files import PARTIAL, json_text, remove, sha256, sync, write_whole
from paddle_tfm.language import _
from paddle_tfm.runs.forms import IDENTITY, RESULTS, Count, Form, Progress, read_form

FILE = "manifest.json"
STATE, WEIGHTS = "state.json", "model.safetensors"
OLD = ".old"  # behind the name of a checkpoint: the one before it
COMPARED = ("recipe.yaml", IDENTITY, "metrics.jsonl", "predictions*.tsv")  # of a finished run, beside its results


class Saved(Form):
    """A file in a manifest, as it was saved."""

    bytes: Count
    sha256: str


class RunManifest(Form):
    """`manifest.json` of a finished run: the files by which it is compared."""

    files: dict[str, Saved]


class Manifest(RunManifest):
    """`manifest.json` of a checkpoint. `identity`: the hash of the run's."""

    step: Count
    identity: str


def write(folder: Path, step: int, identity: str) -> None:
    """Write the manifest of the files in `folder`, and wait until all of it is on the disk.

    Args:
        step: of the checkpoint. identity: the hash of that of the run that it is of.
    """
    files = {}
    for path in sorted(folder.iterdir()):
        sync(path)
        files[path.name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
    manifest = {"step": step, "identity": identity, "files": files}
    (folder / FILE).write_text(json.dumps(manifest, indent=1), "utf-8")
    sync(folder / FILE)
    sync(folder)


def write_of_run(folder: Path, results: bytes) -> None:
    """Write the manifest of what a run is compared by, before its `results` are: with these it is finished."""
    paths = [path for pattern in COMPARED for path in sorted(folder.glob(pattern))]
    files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in paths}
    files[RESULTS] = {"bytes": len(results), "sha256": hashlib.sha256(results).hexdigest()}
    write_whole(folder / FILE, json_text({"files": files}))


def damage_of_run(folder: Path) -> str | None:
    """A sentence on the first file by which a finished run is compared that is not as it was saved; None if all that
    are here are: without its manifest, or a file that its scores do not need, a run is still compared."""
    if not (folder / FILE).exists():
        return None
    try:
        files = read_form(folder / FILE, RunManifest)["files"]
    except UserError as error:
        return str(error)
    here = ((folder / name, file) for name, file in files.items() if (folder / name).exists())
    return next(filter(None, (_damage(path, file["bytes"], file["sha256"]) for path, file in here)), None)


def damage_of_best(folder: Path) -> str | None:
    """`damage` of the best weights of the run in a folder; None where they are not here."""
    best = find(folder / "checkpoints" / "best")
    return None if best is None else damage(best, WEIGHTS)


def damage(folder: Path, only: str | None = None) -> str | None:
    """A sentence on the first file of a checkpoint that is not as it was saved; None if it is whole. only: the name of
    the one file that matters."""
    try:
        files = read(folder)["files"]
    except UserError as error:
        return str(error)
    for name in dict.fromkeys([STATE, WEIGHTS, *files]):
        if name not in files:
            return _("{folder}: damaged: it does not list {name}").format(folder=folder / FILE, name=name)
        if only in (None, name) and (sentence := _damage(folder / name, files[name]["bytes"], files[name]["sha256"])):
            return sentence
    return None


def read(folder: Path) -> dict[str, Any]:
    """The manifest of a checkpoint: `step`, `identity`, and `files`, each with `bytes` and `sha256`.

    Raises:
        UserError: it cannot be read, or is of another form.
    """
    return read_form(folder / FILE, Manifest)


def read_state(folder: Path) -> Progress:
    """What a checkpoint holds beside its arrays.

    Raises:
        UserError: it cannot be read, or is of another form.
    """
    return Progress(**read_form(folder / STATE, Progress, ("step",)))


def _damage(path: Path, size: int, digest: str) -> str | None:
    if not path.is_file():
        return _("{path}: no such file").format(path=path)
    if path.stat().st_size != size:
        return _("{path}: damaged: it has {bytes:,} bytes, but {size:,} were saved").format(
            path=path, bytes=path.stat().st_size, size=size
        )
    if sha256(path) != digest:
        return _("{path}: damaged: its content is not what was saved (its SHA-256 is another)").format(path=path)
    return None


def find(folder: Path) -> Path | None:
    """Where the checkpoint `folder` is: beside it, if a kill came between the two renames of a save; None: nowhere."""
    return next((path for path in versions(folder) if path.is_dir()), None)


def lost(folder: Path) -> str | None:
    """A sentence if the weights of the checkpoint `folder` are gone or damaged; None if they are whole."""
    there = find(folder)
    return _("{folder}: this checkpoint is gone").format(folder=folder) if there is None else damage(there, WEIGHTS)


def versions(folder: Path) -> tuple[Path, Path]:
    """Where a checkpoint is, and where the one before it is."""
    return folder, folder.with_name(folder.name + OLD)


def resume_point(checkpoints: Path, report: Callable[[str], None] = lambda text: None) -> Path | None:
    """The newest checkpoint of a run from which its training can resume; None where none was saved. `report` gets a
    sentence for one that is passed over.

    Raises:
        UserError: there are some, and none is whole.
    """
    wrong: list[str] = []
    for point in versions(checkpoints / "last"):
        if not point.is_dir():
            continue
        sentence = damage(point) or _lack(point, checkpoints)
        if sentence is None:
            if wrong:
                step = read_state(point).step
                report(
                    _("{sentences}; it is passed over, and the training resumes from step {step:,}").format(
                        sentences="; ".join(wrong), step=step
                    )
                )
            return point
        wrong.append(sentence)
    if wrong:
        text = _("{sentences}; remove {parent} to train this run again")
        raise UserError(text.format(sentences="; ".join(wrong), parent=checkpoints.parent))
    return None


def _lack(point: Path, checkpoints: Path) -> str | None:
    """What the training lacks that would resume at `point`: the best weights so far, or those to be averaged."""
    try:
        state = read_state(point)
    except UserError as error:
        return str(error)
    names = [] if state.best is None else ["best"]
    for name in [*names, *map(snapshot, state.snapshots)]:
        if sentence := lost(checkpoints / name):
            return sentence
    return None


def snapshot(step: int | str) -> str:
    """The name of the checkpoint of the weights at a step, which wait to be averaged."""
    return f"step-{step}"


def keep_snapshots(folder: Path, steps: Iterable[int]) -> None:
    """Remove the weights of all steps but `steps` from a run's checkpoints, since no average needs them."""
    names = [snapshot(step) for step in steps]
    for each in folder.glob(snapshot("*")):
        if each.name not in names:
            remove(each, ignore_errors=True)


def forget_snapshots(point: Path, identity: str) -> None:
    """Have the checkpoint from which a finished run continues wait for no weights to be averaged: they are gone."""
    progress = read_state(point)
    if not progress.snapshots:
        return
    partial = point.with_name(point.name + PARTIAL)
    remove(partial, ignore_errors=True)
    shutil.copytree(point, partial)
    write_whole(partial / STATE, json_text({**progress.model_dump(), "snapshots": []}))
    (partial / FILE).unlink()
    write(partial, progress.step, identity)
    remove(point)
    partial.rename(point)


def remove_intermediate(folder: Path) -> None:
    """Remove what a finished run does not need from its checkpoints: weights that waited to be averaged, the checkpoint
    before the last and the one before the best, and what a process that was killed had begun to write."""
    keep_snapshots(folder, [])
    for newest, old in (versions(folder / name) for name in ("best", "last")):
        if newest.exists():
            remove(old, ignore_errors=True)
    for partial in folder.glob(f"*{PARTIAL}"):
        remove(partial, ignore_errors=True)
