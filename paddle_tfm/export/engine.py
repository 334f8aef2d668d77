"""Which engine translates: ours, or an export that is made once and kept in the run's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def open_engine(
    run: Run,
    name: str,
    search: Search,
    checkpoint: str = "best",
    scores: bool = True,
    device: str = "cpu",
    report: Callable[[str], None] = lambda text: None,
) -> Callable[..., Any] | None:
    """What decodes for `inference.translate`, or by a decoder-only run for `inference.generate`; None: our own search.

    Args:
        name: of ENGINES. `auto` takes CTranslate2 where it is installed, holds the model and does the same search, and
            reports what it took.
        scores: whether log-probabilities are needed.
        device: where Paddle computes; CTranslate2 computes on the CPU here.
    Raises:
        UserError: `name` is ctranslate2, and it cannot be used.
    """
    if name == OURS:
        return None
    if name == TARGET:
        load_ctranslate2()
        search_options(search)
        return _load(run, exported(run, checkpoint, report), scores)
    if device != "cpu":
        report(f"engine: {OURS}, as Paddle computes on {device}")
        return None
    if (reason := why_not_exact(search)) is not None:
        report(f"engine: {OURS}, as {reason}")
        return None
    try:
        engine = _load(run, exported(run, checkpoint, report), scores)
    except UserError as error:
        report(f"engine: {OURS}: {error}")
        return None
    report(f"engine: {TARGET}")
    return engine


def _load(run: Run, folder: Path, scores: bool) -> Callable[..., Any]:
    """The export in `folder`, as the engine of this run."""
    page = read_json(folder / PAGE, ["longest_text", "prompt_at_once"])
    source, target = run.codec.source_vocabulary, run.codec.target_vocabulary
    if run.is_decoder_only:
        return ExportedGenerator(run.model, folder, target, bool(page["prompt_at_once"]))
    return ExportedDecoder(run.model, folder, source, target, int(page["longest_text"]), scores, "float32")


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
