"""The folder of an export: CTranslate2's files, the tokenizers', and a page that says what it was made from."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from paddle_tfm.data.codec import Encoded
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.errors import UserError
from paddle_tfm.export.ctranslate2.rules import Rules
from paddle_tfm.export.ctranslate2.spec import load_ctranslate2, save
from paddle_tfm.export.ctranslate2.variables import TARGET, Variables, variables
from paddle_tfm.export.proof import Proof, prove
from paddle_tfm.files import beside, json_text, read_json, remove, sha256
from paddle_tfm.language import _
from paddle_tfm.runs import checkpoint as saved
from paddle_tfm.runs import manifest
from paddle_tfm.runs.identity import read_identity
from paddle_tfm.train.run import Run

PAGE = "paddle_tfm.json"
FORMAT = 2  # of the folder; another number is exported again
PROOF_SENTENCES = 200


def export_folder(run: Run, quantization: str = "float32", checkpoint: str = "best") -> Path:
    """Where a run's exports are: export/ctranslate2, with the names of what is not the default appended."""
    parts = [TARGET] + [quantization] * (quantization != "float32") + [checkpoint] * (checkpoint != "best")
    return run.folder / "export" / "-".join(parts)


def source_of(run: Run, checkpoint: str, quantization: str) -> dict[str, object]:
    """What an export is made from: an export of another source is not reused."""
    weights = saved.existing(run.folder / "checkpoints" / checkpoint, run.folder) / manifest.WEIGHTS
    return {
        "format": FORMAT,
        "paddle_tfm": importlib.metadata.version("paddle-tfm"),
        "identity": read_identity(run.folder).get("hash"),
        "components": run.plan.providers(),
        "checkpoint": checkpoint,
        "step": run.step,
        "weights": sha256(weights),
        "quantization": quantization,
    }


def is_current(folder: Path, source: dict[str, object]) -> bool:
    """Whether `folder` holds a whole export of this source, its files as they were written."""
    try:
        page = read_json(folder / PAGE)
        return all(page.get(key) == value for key, value in source.items()) and page.get("files") == _files(folder)
    except (UserError, OSError):
        return False


def _files(folder: Path) -> dict[str, str]:
    """path → SHA-256 of all files of an export but its page."""
    return {path: sha256(folder / path) for path in _paths(folder)}


def _paths(folder: Path) -> list[str]:
    """All files of an export but its page."""
    paths = (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if not path.is_dir())
    return [path for path in paths if path != PAGE]


def _require_ours(folder: Path, run: Run) -> None:
    """Raises UserError where a folder that is to be replaced is no export, or holds a file that no export wrote. What
    an export within the run itself holds is the engine's."""
    if not (folder / PAGE).is_file():
        if not folder.is_dir() or any(folder.iterdir()):
            raise UserError(f"{folder}: there are other files in it; name a new folder")
    elif run.folder not in folder.parents:
        written = read_json(folder / PAGE).get("files")
        others = [path for path in _paths(folder) if path not in written] if isinstance(written, dict) else []
        if others:
            raise UserError(f"{folder}: {others[0]} is no file of the export there; move it, or name a new folder")


def export(
    run: Run,
    rules: Rules,
    folder: Path,
    quantization: str = "float32",
    checkpoint: str = "best",
    compare: Callable[[Path], dict[str, object]] | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> Proof:
    """Write an export of a run, whole or not at all.

    Args:
        run: with the weights of `checkpoint`. folder: replaced, if it is an export.
        compare: called with the folder of the float32 model and then with that of the quantized one, before they are
            at their place; what it returns is kept in the folder's page.
    Raises:
        ExportRefused: CTranslate2 cannot hold the model, or computes something else than we do.
        UserError: the folder is someone else's; CTranslate2 is not installed.
    """
    load_ctranslate2()
    if folder.exists():
        _require_ours(folder, run)
    model = variables(run.model, rules)
    with _partial(folder) as partial:  # where that cannot be made, no text is read
        sentences = proof_sentences(run)
        _write(run, model, "float32", partial)
        report(_("comparing {number} outputs with Paddle's").format(number=len(sentences)))
        proof = prove(run.model, run.codec, partial, model, sentences)
        scores = {}
        if quantization != "float32":
            scores["float32"] = compare(partial) if compare else {}
            for file in partial.glob("*"):
                remove(file)
            _write(run, variables(run.model, rules, quantization), quantization, partial)
            scores[quantization] = compare(partial) if compare else {}
        page = source_of(run, checkpoint, quantization) | {
            "run": run.name,
            "recipe": run.plan.run.recipe,
            "target": TARGET,
            "ctranslate2": load_ctranslate2().__version__,
            "longest_text": model.positions,
            "prompt_at_once": model.prompt_at_once,
            "proof": proof._asdict(),
            "scores": scores,
            "files": _files(partial),
        }
        (partial / PAGE).write_text(json_text(page), "utf-8")
    return proof


def proof_sentences(run: Run) -> list[Encoded]:
    """Validation sentences that are compared, from the first on: those that the model was made for."""
    texts = load_corpus(run.plan, ["valid"]).splits["valid"]
    chosen: list[Encoded] = []
    for text in texts:
        encoded = run.codec.encode(text)
        if len(encoded.source) <= run.model.max_length and (len(encoded.source) > 1 or run.model.encoder is None):
            chosen.append(encoded)
        if len(chosen) == PROOF_SENTENCES:
            break
    if not chosen:
        raise UserError(f"{run.folder}: no validation sentence is within model.max_length, so nothing can be compared")
    return chosen


def _write(run: Run, model: Variables, quantization: str, folder: Path) -> None:
    codec, decoder_only = run.codec, run.model.encoder is None
    sides: Sequence[tuple] = [("target", codec.target, codec.target_vocabulary)]
    if not decoder_only:
        sides = [("source", codec.source, codec.source_vocabulary), *sides]
    for side, tokenizer, _vocabulary in sides:
        (folder / side).mkdir(parents=True, exist_ok=True)
        tokenizer.save(folder / side)
    save(model, [vocabulary.pieces for *_, vocabulary in sides], quantization, folder)


@contextmanager
def _partial(folder: Path) -> Iterator[Path]:
    """A folder beside `folder`, which takes its place at the end, or is removed if something fails."""
    partial, old = beside(folder), beside(folder)
    partial.mkdir(parents=True)
    try:
        yield partial
        if folder.exists():
            folder.rename(old)
        partial.rename(folder)
    finally:
        for left in (partial, old):
            remove(left, ignore_errors=True)
