"""Which engine translates: ours, or an export that is made once and kept in the run's folder."""

from __future__ import annotations

from collections.abc import Callable

from paddle_tfm.errors import UserError
from paddle_tfm.export.decoder import ExportedDecoder, is_exact, search_options
from paddle_tfm.export.folder import export, export_folder, is_current, source_of
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
    if name == OURS:
        return None
    if name == TARGET:
        return _exported(run, search, checkpoint, scores, report)
    if device != "cpu":
        report(f"engine: {OURS}, as Paddle computes on {device}")
        return None
    if not is_exact(search):
        reason = f"search '{type(search).__name__.lower()}' may give other outputs with {TARGET}"
        report(f"engine: {OURS}, as {reason} (--engine {TARGET} takes it)")
        return None
    try:
        decoder = _exported(run, search, checkpoint, scores, report)
    except UserError as error:
        report(f"engine: {OURS}: {error}")
        return None
    report(f"engine: {TARGET}")
    return decoder


def _exported(
    run: Run, search: Search, checkpoint: str, scores: bool, report: Callable[[str], None]
) -> ExportedDecoder:
    load_ctranslate2()
    search_options(search)
    folder, source = export_folder(run, checkpoint=checkpoint), source_of(run, checkpoint, "float32")
    if not is_current(folder, source):
        proof = export(run, folder, checkpoint=checkpoint)
        report(f"exported to {folder}: {proof.sentence()}")
    positions = int(read_json(folder / "paddle_tfm.json", ["longest_text"])["longest_text"])
    codec = run.codec
    return ExportedDecoder(
        run.model, folder, codec.source_vocabulary, codec.target_vocabulary, positions, scores, "float32"
    )
