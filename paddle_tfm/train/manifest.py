"""`manifest.json` of a checkpoint, and of a finished run: its files, by which anybody can say whether it is whole; and
from which checkpoint a training resumes, and which of them stay. Needs no Paddle."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from paddle_tfm.errors import UserError
from paddle_tfm.files import PARTIAL, json_text, read_json, remove, sha256, sync, write_whole
from paddle_tfm.train.forms import IDENTITY, RESULTS, read_stored_identity

FILE = "manifest.json"
STATE, WEIGHTS = "state.json", "model.safetensors"
OLD = ".old"  # behind the name of a checkpoint: the one before it
OF_RUN = {"recipe": "another recipe", "data": "other texts"}  # in an identity and in a manifest
COMPARED = ("recipe.yaml", IDENTITY, "metrics.jsonl", "predictions*.tsv")  # of a finished run, beside its results
SNAPSHOT = re.compile(rf"step-\d+({re.escape(OLD)})?")


def write(folder: Path, step: int, identity: Mapping[str, Any]) -> None:
    """Write the manifest of the files in `folder`, and wait until all of it is on the disk.

    Args:
        step: of the checkpoint. identity: of the run that it is of, whose `hash`, `recipe` and `data` it keeps.
    """
    files = {}
    for path in sorted(folder.iterdir()):
        sync(path)
        files[path.name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
    of_run = {"identity": identity.get("hash", ""), **{key: identity.get(key, "") for key in OF_RUN}}
    manifest = {"step": step, **of_run, "files": files}
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
    are here are, as far as can be said: a run that is older has no manifest."""
    if not (folder / FILE).exists():
        return None
    try:
        files = _files(folder, read_json(folder / FILE, ("files",))["files"])
    except UserError as error:
        return str(error)
    here = ((folder / name, file) for name, file in files.items() if (folder / name).exists())
    return next(filter(None, (_damage(path, file["bytes"], file["sha256"]) for path, file in here)), None)


def damage_of_best(folder: Path) -> str | None:
    """`damage` of the best weights of the run in a folder; None where they are not here."""
    best = find(folder / "checkpoints" / "best")
    return None if best is None else damage(best, WEIGHTS)


def damage(folder: Path, only: str | None = None) -> str | None:
    """A sentence on the first file of a checkpoint that is not as it was saved; None if it is whole, as far as can be
    said: one that was saved before there were manifests has none. only: the name of the one file that matters."""
    if not (folder / FILE).exists():
        paths = [folder / STATE, folder / WEIGHTS, *folder.glob("*.safetensors")]
        return next((f"{path}: no such file" for path in paths if not path.is_file()), None)
    try:
        stored = read(folder)
    except UserError as error:
        return str(error)
    if differing := _other_origin(folder, stored):
        return f"{folder}: is of another run: it was saved by one of {differing}"
    files = stored["files"]
    needed = {STATE, WEIGHTS, *(path.name for path in folder.glob("*.safetensors"))}
    if unlisted := sorted(needed - files.keys()):
        return f"{folder / FILE}: damaged: it does not list {' and '.join(unlisted)}"
    for name, stored in files.items():
        if only in (None, name) and (sentence := _damage(folder / name, stored["bytes"], stored["sha256"])):
            return sentence
    return None


def _other_origin(folder: Path, stored: Mapping[str, Any]) -> str:
    """What of a checkpoint's manifest (an older one says less) is another than that of the run that it lies in; "" if
    nothing is."""
    try:
        of_run = read_stored_identity(folder.parents[1])
    except UserError:
        return ""
    both = ((what, stored.get(key), of_run.get(key)) for key, what in OF_RUN.items())
    return next((what for what, saved, now in both if saved and now and saved != now), "")


def read(folder: Path) -> dict[str, Any]:
    """The manifest of a checkpoint: `step`, `identity`, and `files`, each with `bytes` and `sha256`.

    Raises:
        UserError: it cannot be read, or is of another form.
    """
    stored = read_json(folder / FILE, ("step", "identity", "files"))
    _files(folder, stored["files"])
    if not _is_step(stored["step"]) or not isinstance(stored["identity"], str):
        raise UserError(f"{folder / FILE}: damaged: it is no manifest of files")
    return stored


def _files(folder: Path, files: Any) -> dict[str, Any]:
    """The files that a manifest lists, if it does."""
    if not isinstance(files, dict) or not all(_is_entry(name, entry) for name, entry in files.items()):
        raise UserError(f"{folder / FILE}: damaged: it is no manifest of files")
    return files


def _is_entry(name: str, entry: object) -> bool:
    if not re.fullmatch(r"\w[\w.@-]{0,99}", name) or not isinstance(entry, dict):
        return False
    return entry.keys() == {"bytes", "sha256"} and _is_step(entry["bytes"]) and isinstance(entry["sha256"], str)


def _is_step(value: object) -> bool:
    """Whether it can be a number of steps, or of bytes."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def read_state(folder: Path, keys: Iterable[str] = ("step",)) -> dict[str, Any]:
    """What a checkpoint holds beside its arrays; it must have `keys`, and may have more.

    Raises:
        UserError: it cannot be read, lacks one of `keys`, or its steps are none.
    """
    state = read_json(folder / STATE, dict.fromkeys(("step", *keys)))
    snapshots = state.get("snapshots") or []
    if not isinstance(snapshots, list) or not all(map(_is_step, [state["step"], *snapshots])):
        raise UserError(f"{folder / STATE}: damaged: `step` and `snapshots` must be numbers of steps")
    return state


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
                step = read_state(point)["step"]
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
        state = read_state(point)
    except UserError as error:
        return str(error)
    best = find(checkpoints / "best")
    sentence = f"{checkpoints / 'best'}: this checkpoint is gone" if best is None else damage(best, WEIGHTS)
    if best is not None and sentence is None:
        sentence = earlier(best, state.get("best_step"))
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


def earlier(best: Path, step: object) -> str | None:
    """A sentence where best weights are of an earlier step than those that a training says were the best, as in a
    folder of which a part was put back; None if they are not."""
    there = _read(best / STATE).get("step")
    if not isinstance(step, int) or not isinstance(there, int) or there >= step:
        return None
    return f"{best}: is of step {there:,}, but the best weights were those of step {step:,}"


def earlier_best(folder: Path) -> str | None:
    """`earlier` for the best weights of the run in a folder, finished or not."""
    best, last = (find(folder / "checkpoints" / name) for name in ("best", "last"))
    if best is None:
        return None
    steps = (_read(folder / RESULTS).get("best_step"), _read(last / STATE).get("best_step") if last else None)
    return next(filter(None, (earlier(best, step) for step in steps)), None)


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


def snapshot(step: int | str) -> str:
    """The name of the checkpoint of the weights at a step, which wait to be averaged."""
    return f"step-{step}"


def keep_snapshots(folder: Path, steps: Iterable[int]) -> None:
    """Remove the weights of all steps but `steps` from a run's checkpoints, since no average needs them."""
    names = [snapshot(step) for step in steps]
    for each in folder.glob(snapshot("*")):
        if SNAPSHOT.fullmatch(each.name) and each.name not in names:
            remove(each, ignore_errors=True)


def remove_intermediate(folder: Path) -> None:
    """Remove what a finished run does not need from its checkpoints: weights that waited to be averaged, the checkpoint
    before the last and the one before the best, and what a process that was killed had begun to write."""
    keep_snapshots(folder, [])
    for newest, old in (versions(folder / name) for name in ("best", "last")):
        if newest.exists():
            remove(old, ignore_errors=True)
    for partial in folder.glob(f"*{PARTIAL}"):
        remove(partial, ignore_errors=True)
