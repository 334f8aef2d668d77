"""Which engine translates: Paddle, or CTranslate2 with an export that is made once and kept in the run's folder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from paddle_tfm.errors import UserError
from paddle_tfm.export.ctranslate2.decoder import ExportedDecoder
from paddle_tfm.export.ctranslate2.generator import ExportedGenerator
from paddle_tfm.export.ctranslate2.rules import ExportRefused, Rules
from paddle_tfm.export.ctranslate2.spec import load_ctranslate2
from paddle_tfm.export.ctranslate2.variables import TARGET
from paddle_tfm.export.folder import PAGE, export, export_folder, is_current, source_of
from paddle_tfm.files import json_text, read_json, remove, write_whole
from paddle_tfm.language import _
from paddle_tfm.protocols import Search
from paddle_tfm.train.run import Run

AUTO, PADDLE = "auto", "paddle"
ENGINES = (AUTO, PADDLE, TARGET)
Report = Callable[[str], None]


def open_engine(
    run: Run,
    rules: Rules,
    name: str,
    search: Search,
    checkpoint: str = "best",
    scores: bool = True,
    device: str = "cpu",
    make: bool = True,
    report: Report = lambda text: None,
) -> Callable[..., Any] | None:
    """What decodes for `inference.translate`, or by a decoder-only run for `inference.generate`; None: Paddle.

    Args:
        name: of ENGINES. `auto` takes CTranslate2 where it is installed, writes the same by this search, and the run's
            export has proved itself; it reports what it took, and why that is Paddle.
        scores: whether log-probabilities are needed.
        device: where Paddle computes; CTranslate2 computes on the CPU here.
        make: whether `auto` makes an export that is not there.
    Raises:
        UserError: `name` is ctranslate2, and it cannot be used.
    """
    if name == PADDLE:
        return None
    if name == TARGET:
        load_ctranslate2()
        try:
            rules.held(search)
            return _load(run, rules, exported(run, rules, checkpoint, report), scores)
        except ExportRefused as refused:
            raise ExportRefused(f"{refused}; --engine {PADDLE} translates without it") from refused
    try:
        if device != "cpu":
            raise UserError(_("Paddle computes on {device}").format(device=device))
        _require_same(search, rules)
        engine = _load(run, rules, _proved(run, rules, checkpoint, make, report), scores)
    except UserError as reason:
        report(_("engine: {engine}, as {reason}").format(engine=PADDLE, reason=reason))
        return None
    report(_("engine: {engine}").format(engine=TARGET))
    return engine


def _require_same(search: Search, rules: Rules) -> None:
    """Raises UserError where CTranslate2 may write something else by a search."""
    if "penalty" in rules.held(search):
        name = rules.name(search)
        text = _("search '{name}' may give other outputs with {engine} (--engine {engine} takes it)")
        raise UserError(text.format(name=name, engine=TARGET))


def _load(run: Run, rules: Rules, folder: Path, scores: bool) -> Callable[..., Any]:
    """The export in `folder`, as the engine of this run."""
    page = read_json(folder / PAGE, ["longest_text", "prompt_at_once"])
    source, target = run.codec.source_vocabulary, run.codec.target_vocabulary
    if run.is_decoder_only:
        return ExportedGenerator(run.model, folder, rules.held, target, bool(page["prompt_at_once"]))
    positions = int(page["longest_text"])
    return ExportedDecoder(run.model, folder, rules.held, source, target, positions, scores, "float32")


def exported(run: Run, rules: Rules, checkpoint: str = "best", report: Report = lambda text: None) -> Path:
    """The folder of the run's own export in float32, made now if there is none of these weights; reports what it does.

    Raises:
        ExportRefused: CTranslate2 cannot hold the model, or computes something else with it.
        UserError: CTranslate2 is not installed.
    """
    load_ctranslate2()
    folder, source = export_folder(run, checkpoint=checkpoint), source_of(run, checkpoint, "float32")
    if not is_current(folder, source):
        proof = export(run, rules, folder, checkpoint=checkpoint, report=report)
        report(_("exported to {folder}: {proof}").format(folder=folder, proof=proof.sentence()))
    return folder


# ----------------------------------------------------------------------------------------------------------------- auto


def _proved(run: Run, rules: Rules, checkpoint: str, make: bool, report: Report) -> Path:
    """The folder of an export that has proved itself. One that was refused is remembered beside it, and not tried again
    with the same weights, code, rules and CTranslate2.

    Raises:
        UserError: there is none; the message says why.
    """
    version = load_ctranslate2().__version__
    folder, source = export_folder(run, checkpoint=checkpoint), source_of(run, checkpoint, "float32")
    if is_current(folder, source):
        return folder
    refused = folder.with_name(f"{folder.name}-refused.json")
    tried = source | {"ctranslate2": version, "rules": rules.identity()}
    if reason := _remembered(refused, tried):
        raise UserError(reason)
    if not make:
        text = _(
            "this run has no export yet, which takes longer than a few texts: `paddle-tfm export RUN --to {engine}` "
            "makes it"
        )
        raise UserError(text.format(engine=TARGET))
    text = _("exporting to {engine}, once; Ctrl-C continues without it, and --engine {paddle} never makes one")
    report(text.format(engine=TARGET, paddle=PADDLE))
    try:
        exported(run, rules, checkpoint, report)
    except ExportRefused as error:
        _remember(refused, {"reason": str(error), **tried})
        raise
    except OSError as error:
        text = _("the export cannot be written: {folder}: {why}")
        raise UserError(text.format(folder=folder, why=error.strerror)) from error
    except KeyboardInterrupt:
        raise UserError(_("the export was stopped")) from None
    remove(refused, ignore_errors=True)
    return folder


def _remembered(file: Path, tried: dict[str, object]) -> str | None:
    """Why an export of the same was refused; None if none was."""
    with suppress(UserError):
        page = read_json(file, ["reason"])
        if all(page.get(key) == value for key, value in tried.items()):
            return str(page["reason"])
    return None


def _remember(file: Path, page: dict[str, object]) -> None:
    """Not where the run's folder cannot be written: then it is tried again."""
    with suppress(OSError):
        file.parent.mkdir(exist_ok=True)
        write_whole(file, json_text(page), shared=True)
