"""Which toolkit a model is of, and an imported model as a run: all that one's folder holds, but no log of steps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from paddle_tfm.data.codec import Codec
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.errors import UserError
from paddle_tfm.files import json_text, remove, write_whole
from paddle_tfm.imports import PROOF
from paddle_tfm.imports.ctranslate2 import read_argos, read_ctranslate2
from paddle_tfm.imports.foreign import Foreign
from paddle_tfm.imports.marian import read_marian
from paddle_tfm.imports.recorded import Outcome, Recorded, compare, texts_of
from paddle_tfm.language import _
from paddle_tfm.model.build import build
from paddle_tfm.model.size import matrix_parameters
from paddle_tfm.protocols import SPLITS
from paddle_tfm.recipe import loading as recipes
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.plan import Plan, plan_run
from paddle_tfm.registry import Registry
from paddle_tfm.runs import checkpoint
from paddle_tfm.runs.forms import Progress
from paddle_tfm.runs.logs import LOGS, append_row
from paddle_tfm.train.evaluate import Scorer
from paddle_tfm.train.finish import FinalTests, results_of, write_results
from paddle_tfm.train.run import Run, write_start

Report = Callable[[str], None]


def read_model(path: Path, as_trained: bool = False) -> Foreign:
    """The model at `path`: an .argosmodel, a folder of CTranslate2, or Marian's.

    Raises:
        UserError: none is there that is known, or a file of it is damaged.
    """
    if not path.exists():
        raise UserError(_("{path}: no such file or folder").format(path=path))
    if path.suffix == ".argosmodel":
        return read_argos(path)
    if path.name == "model.bin" or (path / "model.bin").is_file():
        return read_ctranslate2(path if path.is_dir() else path.parent)
    return read_marian(path, as_trained)


def import_model(
    foreign: Foreign,
    folder: Path,
    registry: Registry,
    recorded: Sequence[Recorded],
    task: Any = None,
    report: Report = lambda text: None,
) -> list[Outcome]:
    """Write a run with the model, compare it with what is recorded, and score it on its task; whole or not at all.

    Args:
        folder: new, or empty. task: of the recipe; None: the texts that are recorded.
        report: gets a sentence about what is being done.
    Raises:
        UserError: the folder holds something, or what is recorded cannot be read.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(_("{folder}: there are other files in it; name a new folder").format(folder=folder))
    try:
        return _import(foreign, folder, registry, recorded, task, report)
    except BaseException:
        remove(folder, ignore_errors=True)
        raise


def _import(
    foreign: Foreign, folder: Path, registry: Registry, recorded: Sequence[Recorded], task: Any, report: Report
) -> list[Outcome]:
    _write_codec(foreign, folder / "codec")
    has_texts = task is not None or bool(recorded)
    if task is None:
        texts = [str(folder / "texts" / name) for name in ("source.txt", "target.txt")]
        task = {"name": "parallel", **{split: list(texts) for split in SPLITS}}
    plan = _plan(foreign, folder, task, registry)
    codec = Codec.load(plan, folder / "codec")
    model = build(plan.sound_model, len(codec.source_vocabulary), len(codec.target_vocabulary))
    checkpoint.set_arrays(model, foreign.arrays)
    model.eval()
    run = Run(folder, plan, codec, model, {})
    if recorded:
        _write_texts(folder / "texts", *texts_of(recorded[-1], codec))
    if has_texts:
        corpus = load_corpus(plan)
        run.fingerprint, run.encoded = corpus.fingerprint, corpus.encode(codec)
    write_start(run)
    outcomes = []
    for each in recorded:
        report(_("comparing with {output}").format(output=each.output))
        outcomes.append(compare(run, registry, each))
    page = {"origin": foreign.origin, "remarks": foreign.remarks, "compared": [_as_data(each) for each in outcomes]}
    write_whole(folder / PROOF, json_text(page))
    _finish(run, report if has_texts else None)
    return outcomes


def _as_data(outcome: Outcome) -> dict[str, Any]:
    return {**outcome._asdict(), "different": [each._asdict() for each in outcome.different]}


def _write_codec(foreign: Foreign, folder: Path) -> None:
    for name, side in foreign.sides.items():
        (folder / name).mkdir(parents=True)
        write_whole(folder / name / "vocabulary.json", json.dumps(side.own_pieces(), ensure_ascii=False, indent=0))
        if side.sentencepiece is not None:
            (folder / name / "sentencepiece.model").write_bytes(side.sentencepiece)


def _plan(foreign: Foreign, folder: Path, task: Any, registry: Registry) -> Plan:
    """The plan of the recipe, whose files are those of the run."""
    codec = {side: folder / "codec" / side for side in foreign.sides}
    tokenizers: dict[str, Any] = {
        name: "space"
        if side.sentencepiece is None
        else {"name": "sentencepiece_file", "file": str(codec[name] / "sentencepiece.model")}
        for name, side in foreign.sides.items()
    }
    source, target = foreign.sides.values()
    is_one = source.sentencepiece == target.sentencepiece
    files = [str(folder / "vocabulary.json") for folder in codec.values()]
    name = re.sub(r"[^\w.-]+", "-", folder.absolute().name).lstrip(".-") or "imported"
    evaluate = {"metrics": ["bleu", "chrf", "perplexity"], "best": "bleu", **foreign.recipe["evaluate"]}
    recipe = {
        "name": name[:100],
        "summary": " ".join(foreign.origin.values()),
        "base": "base.yaml",
        "task": task,
        "tokenizer": tokenizers["source"] if is_one else tokenizers,
        "vocabulary": {"shared": foreign.shared, "file": files[0] if foreign.shared else files},
        **foreign.recipe,
        "evaluate": evaluate,
    }
    path = folder / "recipe.yaml"
    write_whole(path, yaml_lines.dump(recipe))
    return plan_run(recipes.load_single(path), registry).require_sound(str(path))


def _write_texts(folder: Path, sources: Sequence[str], outputs: Sequence[str]) -> None:
    folder.mkdir()
    pairs = [pair for pair in zip(sources, outputs) if all(text.strip() for text in pair)]
    for name, texts in zip(("source.txt", "target.txt"), zip(*pairs)):
        write_whole(folder / name, "".join(f"{text}\n" for text in texts))


def _finish(run: Run, report: Report | None) -> None:
    """Save the weights and write the results: scores where there are texts (`report` is given)."""
    progress, results = Progress(), _without_scores(run)
    for log in LOGS:
        (run.folder / log).touch()
    if report is not None:
        report(_("scoring {number} sentences").format(number=f"{len(run.encoded['valid']):,}"))
        score = Scorer(run, lambda done: None)
        metrics, samples = score.valid()
        progress.improved(score.rank(metrics), metrics, score.caveats(samples))
        append_row(run.folder / "metrics.jsonl", {"step": 0, "evaluation": metrics})
        final = FinalTests(run, score, run.search())
        final.do()
        results = results_of(run, progress, 0.0, score, final)
    checkpoint.save(
        run.folder / "checkpoints" / "best", run.model, progress.model_dump(), identity=str(run.identity()["hash"])
    )
    write_results(run.folder, results)


def _without_scores(run: Run) -> dict[str, Any]:
    metrics = run.metrics()
    return {
        "recipe": run.plan.run.recipe,
        "variant": run.plan.run.variant,
        "seed": run.seed,
        "steps": 0,
        "parameters": run.parameters(),
        "matrix_parameters": matrix_parameters(run.model),
        **dict.fromkeys(("tokens", "seconds", "wall_seconds", "tokens_per_second"), 0),
        **{name: {} for name in ("signatures", "tests", "caveats", "dropped")},
        "directions": {name: metric.higher_is_better for name, metric in metrics.items()},
        "units": {name: metric.unit for name, metric in metrics.items()},
        "valid": {},
        "test": {},
    }
