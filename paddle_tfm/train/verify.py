"""Whether a run's files are whole, and of this code and these texts: what `paddle-tfm verify` says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from paddle_tfm.data.codec import Codec
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.errors import UserError
from paddle_tfm.files import PARTIAL, read_json
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.registry import Registry
from paddle_tfm.train import manifest
from paddle_tfm.train.identity import changes, identity, read_identity, read_shards, rounding
from paddle_tfm.train.logs import LOGS, read_rows
from paddle_tfm.train.run import plan_of
from paddle_tfm.units import plural


class Finding(NamedTuple):
    """What was found of a part of a run. `mark`: ok, note (to be known, and nothing is lost) or bad."""

    mark: str
    subject: str
    sentence: str


def verify(folder: Path, registry: Registry, with_data: bool = True) -> Iterator[Finding]:
    """What is to be said of each part of the run in `folder`: checkpoints, logs, code, texts; at the end, where the
    training would resume. `with_data`: whether its texts are read."""
    for path in sorted(each for each in (folder / "checkpoints").glob("*") if each.is_dir()):
        yield _checkpoint(path, folder)
    yield from (_log(folder / name) for name in LOGS)
    yield from _results(folder)
    try:
        stored, plan = read_identity(folder), plan_of(folder, registry)
        Codec.load(plan, folder / "codec")
    except UserError as error:
        yield Finding("bad", "code", str(error))
    else:
        yield from _code(stored, plan)
        if with_data:
            yield _data(stored, plan)
    yield _resume(folder)


def _checkpoint(path: Path, run: Path) -> Finding:
    if path.name.endswith(PARTIAL):
        return Finding("note", path.name, "was being written when its process ended; nothing reads it")
    if sentence := manifest.damage(path):
        return Finding("bad", path.name, sentence)
    if not (path / manifest.FILE).exists():
        return Finding("note", path.name, "has no manifest, because it is older: whether it is whole cannot be told")
    stored = manifest.read(path)
    try:
        of_run = read_json(run / "identity.json").get("hash")
    except UserError:
        of_run = None
    size = sum(file["bytes"] for file in stored["files"].values()) / 2**20
    text = f"step {stored['step']:,}: {plural(len(stored['files']), 'file')}, {size:,.1f} MiB, as they were saved"
    if of_run is not None and stored["identity"] not in ("", of_run):
        return Finding("note", path.name, f"{text}; by a training of another identity than this folder's")
    return Finding("ok", path.name, text)


def _log(path: Path) -> Finding:
    if not path.exists():
        return Finding("bad", path.name, "no such file")
    lines, rows = path.read_bytes().splitlines(), read_rows(path)
    if len(lines) != len(rows):
        return Finding("bad", path.name, f"{plural(len(lines) - len(rows), 'line')} of {len(lines):,} cannot be read")
    steps = {row["step"] for row in rows if "evaluation" not in row}
    if missing := set(range(1, max(steps, default=0))) - steps:
        return Finding("bad", path.name, f"step {min(missing):,} is missing")
    return Finding("ok", path.name, f"{plural(len(steps), 'step')}, none missing")


def _results(folder: Path) -> Iterator[Finding]:
    path = folder / "results.json"
    if path.exists():
        try:
            read_json(path, ("variant", "valid", "test"))
            yield Finding("ok", path.name, "can be read")
        except UserError as error:
            yield Finding("bad", path.name, str(error))


def _code(stored: dict[str, Any], plan: Plan) -> Iterator[Finding]:
    now = identity(plan, stored["data"], read_shards(stored))
    sentences = changes(stored, now)
    if sentences:
        yield Finding("bad", "code", f"since it was trained, {'; '.join(sentences)}")
    else:
        yield Finding("ok", "code", "recipe, plugins and Paddle are those that it was trained with")
        yield from (Finding("note", "code", f"{each}: last bits may differ") for each in rounding(stored, now))


def _data(stored: dict[str, Any], plan: Plan) -> Finding:
    try:
        texts = load_corpus(plan).fingerprint
    except UserError as error:
        return Finding("bad", "data", str(error))
    if sentences := changes({**stored, "data": stored["data"]}, {**stored, "data": json.loads(json.dumps(texts))}):
        return Finding("bad", "data", f"since it was trained, {'; '.join(sentences)}")
    return Finding("ok", "data", f"the texts of {', '.join(texts)} are those that it was trained with")


def _resume(folder: Path) -> Finding:
    if (folder / "results.json").exists():
        return Finding("ok", "resume", "this run is finished")
    said: list[str] = []
    try:
        point = manifest.resume_point(folder / "checkpoints", said.append)
    except UserError as error:
        return Finding("bad", "resume", str(error))
    if point is None:
        return Finding("note", "resume", "no checkpoint to resume from yet: it would begin with step 1")
    step = manifest.read_state(point)["step"]
    return Finding("note" if said else "ok", "resume", f"it would resume from step {step:,}, {point}")
