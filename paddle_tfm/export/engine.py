"""Which engine translates: ours, or an export that is made once and kept in the run's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from paddle_tfm.errors import UserError
from paddle_tfm.export.ctranslate2.decoder import ExportedDecoder
from paddle_tfm.export.ctranslate2.generator import ExportedGenerator
from paddle_tfm.export.ctranslate2.rules import ExportRefused, Rules
from paddle_tfm.export.ctranslate2.spec import load_ctranslate2
from paddle_tfm.export.ctranslate2.variables import TARGET
from paddle_tfm.export.folder import PAGE, export, export_folder, is_current, source_of
from paddle_tfm.files import read_json
from paddle_tfm.protocols import Search
from paddle_tfm.train.run import Run

OURS, AUTO = "paddle_tfm", "auto"
ENGINES = (OURS, TARGET, AUTO)


def open_engine(
    run: Run,
    rules: Rules,
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
        rules.held(search)
        return _load(run, rules, exported(run, rules, checkpoint, report), scores)
    if device != "cpu":
        report(f"engine: {OURS}, as Paddle computes on {device}")
        return None
    if (reason := _why_not_exact(search, rules)) is not None:
        report(f"engine: {OURS}, as {reason}")
        return None
    try:
        engine = _load(run, rules, exported(run, rules, checkpoint, report), scores)
    except UserError as error:
        report(f"engine: {OURS}: {error}")
        return None
    report(f"engine: {TARGET}")
    return engine


def _why_not_exact(search: Search, rules: Rules) -> str | None:
    """Why CTranslate2 may write other outputs by this search, or None where it does not."""
    try:
        options = rules.held(search)
    except ExportRefused as refused:
        return str(refused)
    if "penalty" in options:
        title = f"search '{rules.name(search)}'"
        return f"{title} may give other outputs with ctranslate2 (--engine ctranslate2 takes it)"
    return None


def _load(run: Run, rules: Rules, folder: Path, scores: bool) -> Callable[..., Any]:
    """The export in `folder`, as the engine of this run."""
    page = read_json(folder / PAGE, ["longest_text", "prompt_at_once"])
    source, target = run.codec.source_vocabulary, run.codec.target_vocabulary
    if run.is_decoder_only:
        return ExportedGenerator(run.model, folder, rules.held, target, bool(page["prompt_at_once"]))
    positions = int(page["longest_text"])
    return ExportedDecoder(run.model, folder, rules.held, source, target, positions, scores, "float32")


def exported(
    run: Run, rules: Rules, checkpoint: str = "best", report: Callable[[str], None] = lambda text: None
) -> Path:
    """The folder of the run's own export in float32, made now if there is none of these weights, which is reported.

    Raises:
        UserError: CTranslate2 is not installed or cannot hold the model.
    """
    load_ctranslate2()
    folder, source = export_folder(run, checkpoint=checkpoint), source_of(run, checkpoint, "float32")
    if not is_current(folder, source):
        proof = export(run, rules, folder, checkpoint=checkpoint)
        report(f"exported to {folder}: {proof.sentence()}")
    return folder
