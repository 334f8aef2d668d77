"""Whether a run's files are whole, and of this code and these texts: what `paddle-tfm check RUN` says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from paddle_tfm.data.codec import Codec
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.errors import UserError
from paddle_tfm.files import PARTIAL, content, read_json
from paddle_tfm.language import _, counted
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.registry import Registry
from paddle_tfm.runs import manifest
from paddle_tfm.runs.changes import changes, rounding
from paddle_tfm.runs.folders import plan_of
from paddle_tfm.runs.forms import ABOUT, IDENTITY, RESULTS, read_stored_identity
from paddle_tfm.runs.identity import identity, read_identity
from paddle_tfm.runs.logs import LOGS, rows_of


class Finding(NamedTuple):
    """What was found of a part of a run. `mark`: ok, note (to be known, and nothing is lost) or bad."""

    mark: str
    subject: str
    sentence: str


def lacking(folder: Path) -> str | None:
    """A sentence on what half a run lacks; None for a run of which there is something to check."""
    if missing := [name for name in ("recipe.yaml", IDENTITY) if not (folder / name).exists()]:
        return _("{folder}: half a run: it has no {names}").format(folder=folder, names=_(" and no ").join(missing))
    if not any((folder / "checkpoints").glob("*")):
        gone = _("{folder}: half a run: its checkpoints are gone")
        none = _("{folder}: half a run: its checkpoints are not there, so that --resume would begin with step 1")
        return (gone if (folder / RESULTS).exists() else none).format(folder=folder)
    return None


def findings(folder: Path, registry: Registry, with_data: bool = True) -> Iterator[Finding]:
    """What is to be said of each part of the run in `folder`: checkpoints, logs, code, texts; at the end, where the
    training would resume. `with_data`: whether its texts are read."""
    if sentence := lacking(folder):
        yield Finding("bad" if (folder / RESULTS).exists() else "note", "run", sentence)
        return
    for path in sorted(each for each in (folder / "checkpoints").glob("*") if each.is_dir()):
        yield _checkpoint(path, folder)
    plan, code = _code(folder, registry)
    yield from (_log(folder / name) for name in LOGS)
    yield from _forms(folder)
    yield from code
    if plan is not None and with_data:
        yield _data(read_identity(folder), plan)
    yield _resume(folder)


def _checkpoint(path: Path, run: Path) -> Finding:
    if path.name.endswith(PARTIAL):
        return Finding("note", path.name, _("was being written when its process ended; nothing reads it"))
    if sentence := manifest.damage(path):
        return Finding("bad", path.name, sentence)
    stored = manifest.read(path)
    try:
        stored_of_run = read_stored_identity(run)
        of_run = [stored_of_run.get("hash"), *(each["identity"] for each in stored_of_run.get("continued", []))]
    except UserError:
        of_run = []
    size = sum(file["bytes"] for file in stored["files"].values()) / 2**20
    text = _("step {step:,}: {files}, {size:,.1f} MiB, as they were saved").format(
        step=stored["step"], files=counted(len(stored["files"]), "file"), size=size
    )
    if of_run and stored["identity"] not in ("", *of_run):
        other = _("{text}; by a training of another identity than this folder's")
        return Finding("note", path.name, other.format(text=text))
    return Finding("ok", path.name, text)


def _log(path: Path) -> Finding:
    try:
        lines = content(path).splitlines()
    except OSError as error:
        return Finding("bad", path.name, _("cannot be read: {strerror}").format(strerror=error.strerror))
    if unreadable := len(lines) - len(rows_of(lines)):
        text = _("{unreadable} of {lines:,} cannot be read")
        return Finding("bad", path.name, text.format(unreadable=counted(unreadable, "line"), lines=len(lines)))
    text = _("{lines}, all of which can be read")
    return Finding("ok", path.name, text.format(lines=counted(len(lines), "line")))


def _forms(folder: Path) -> Iterator[Finding]:
    """Whether what a report says of the run can be read, and is as it was saved."""
    for name, keys in ((RESULTS, ("variant", "valid", "test")), (ABOUT, ())):
        if (folder / name).exists():
            try:
                read_json(folder / name, keys)
                yield Finding("ok", name, _("can be read"))
            except UserError as error:
                yield Finding("bad", name, str(error))
    if not (folder / RESULTS).exists():
        return
    if not (folder / manifest.FILE).exists():
        text = _("is not here: nobody can tell whether what the run is compared by is whole")
        yield Finding("bad", manifest.FILE, text)
    elif sentence := manifest.damage_of_run(folder):
        yield Finding("bad", manifest.FILE, sentence)
    else:
        yield Finding("ok", manifest.FILE, _("results, predictions, log and recipe are as they were saved"))


def _code(folder: Path, registry: Registry) -> tuple[Plan | None, list[Finding]]:
    """The plan of its recipe, None where the recipe or its codec cannot be read; and what is to be said of its code."""
    try:
        stored, plan = read_identity(folder), plan_of(folder, registry)
        Codec.load(plan, folder / "codec")
    except UserError as error:
        return None, [Finding("bad", "code", str(error))]
    now = identity(plan, stored["data"], stored["shards"])
    if sentences := changes(stored, now):
        return plan, [
            Finding("bad", "code", _("since it was trained, {sentences}").format(sentences=_("; ").join(sentences)))
        ]
    same = Finding("ok", "code", _("recipe, plugins and Paddle are those that it was trained with"))
    text = _("{sentence}: last bits may differ")
    return plan, [same, *(Finding("note", "code", text.format(sentence=each)) for each in rounding(stored, now))]


def _data(stored: dict[str, Any], plan: Plan) -> Finding:
    try:
        texts = load_corpus(plan).fingerprint
    except UserError as error:
        return Finding("bad", "data", str(error))
    if sentences := changes(stored, {**stored, "data": texts}):
        return Finding("bad", "data", _("since it was trained, {sentences}").format(sentences=_("; ").join(sentences)))
    return Finding(
        "ok", "data", _("the texts of {names} are those that it was trained with").format(names=", ".join(texts))
    )


def _resume(folder: Path) -> Finding:
    if (folder / "results.json").exists():
        return Finding("ok", "resume", _("this run is finished"))
    said: list[str] = []
    try:
        point = manifest.resume_point(folder / "checkpoints", said.append)
    except UserError as error:
        return Finding("bad", "resume", str(error))
    if point is None:
        return Finding("note", "resume", _("no checkpoint to resume from: it would begin with step 1"))
    step = manifest.read_state(point).step
    return Finding(
        "note" if said else "ok",
        "resume",
        _("it would resume from step {step:,}, {point}").format(step=step, point=point),
    )
