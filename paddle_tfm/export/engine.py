"""Which engine translates: ours, or an export that is made once and kept in the run's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from paddle_tfm.errors import UserError
from paddle_tfm.export.decoder import ExportedDecoder, search_options, why_not_exact
from paddle_tfm.export.folder import PAGE, export, export_folder, is_current, source_of
from paddle_tfm.export.generator import ExportedGenerator
from paddle_tfm.export.spec import load_ctranslate2
from paddle_tfm.export.variables import TARGET
from paddle_tfm.files import read_json
from paddle_tfm.protocols import Search
from paddle_tfm.train.run import Run

OURS, AUTO = "paddle_tfm", "auto"
ENGINES = (OURS, TARGET, AUTO)
Engine = TypeVar("Engine", ExportedDecoder, ExportedGenerator)


def open_engine(
    run: Run,
    name: str,
    search: Search,
    checkpoint: str = "best",
    scores: bool = True,
    device: str = "cpu",
    report: Callable[[str], None] = lambda text: None,
) -> ExportedDecoder | None:
    """What decodes for `inference.translate`; None: our own search.

    Args:
        name: of ENGINES. `auto` takes CTranslate2 where it is installed, holds the model and does the same search, and
            reports what it took.
        scores: whether log-probabilities are needed.
        device: where Paddle computes; CTranslate2 computes on the CPU here.
    Raises:
        UserError: `name` is ctranslate2, and it cannot be used.
    """

    def load(folder: Path) -> ExportedDecoder:
        sides = run.codec.source_vocabulary, run.codec.target_vocabulary
        positions = int(read_json(folder / PAGE, ["longest_text"])["longest_text"])
        return ExportedDecoder(run.model, folder, *sides, positions, scores, "float32")

    return _open(load, run, name, search, checkpoint, device, report)


def open_generator(
    run: Run,
    name: str,
    search: Search,
    checkpoint: str = "best",
    device: str = "cpu",
    report: Callable[[str], None] = lambda text: None,
) -> ExportedGenerator | None:
    """What decodes for `inference.generate`, as `open_engine`."""

    def load(folder: Path) -> ExportedGenerator:
        at_once = bool(read_json(folder / PAGE, ["prompt_at_once"])["prompt_at_once"])
        return ExportedGenerator(run.model, folder, run.codec.target_vocabulary, at_once)

    return _open(load, run, name, search, checkpoint, device, report)


def _open(
    load: Callable[[Path], Engine],
    run: Run,
    name: str,
    search: Search,
    checkpoint: str,
    device: str,
    report: Callable[[str], None],
) -> Engine | None:
    """What `load` makes of the run's export; None: our own search."""
    if name == OURS:
        return None
    if name == TARGET:
        load_ctranslate2()
        search_options(search)
        return load(exported(run, checkpoint, report))
    if device != "cpu":
        report(f"engine: {OURS}, as Paddle computes on {device}")
        return None
    if (reason := why_not_exact(search)) is not None:
        report(f"engine: {OURS}, as {reason}")
        return None
    try:
        engine = load(exported(run, checkpoint, report))
    except UserError as error:
        report(f"engine: {OURS}: {error}")
        return None
    report(f"engine: {TARGET}")
    return engine


def exported(run: Run, checkpoint: str = "best", report: Callable[[str], None] = lambda text: None) -> Path:
    """The folder of the run's own export in float32, made now if there is none of these weights, which is reported.

    Raises:
        UserError: CTranslate2 is not installed or cannot hold the model.
    """
    load_ctranslate2()
    folder, source = export_folder(run, checkpoint=checkpoint), source_of(run, checkpoint, "float32")
    if not is_current(folder, source):
        proof = export(run, folder, checkpoint=checkpoint)
        report(f"exported to {folder}: {proof.sentence()}")
    return folder
