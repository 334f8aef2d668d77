"""`paddle-tfm evaluate RUN`: score a trained run, or anybody's translations of its test set."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paddle_tfm.cli import scores
from paddle_tfm.cli.common import console, create_registry, device_option, note, notes, plugin_option, use_device, warn
from paddle_tfm.cli.lines import check_output
from paddle_tfm.cli.scores import QUARTERS
from paddle_tfm.cli.tested import test_options, tested

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paddle_tfm.protocols import Example, Prediction

search_option = click.option("--search", default=None, help="greedy, or {name: beam, size: 10}. Default: the recipe's.")
checkpoint_option = click.option(
    "--checkpoint", type=click.Choice(["best", "last"]), default="best", show_default=True, help="Which one to load."
)
engine_option = click.option(
    "--engine",
    type=click.Choice(["paddle_tfm", "ctranslate2", "auto"]),
    default="paddle_tfm",
    show_default=True,
    help="What decodes. ctranslate2 (needs the extra [ctranslate2]): several times as fast on a CPU; the run is "
    "exported once into its folder, if its greedy outputs are the same. Its beam search ends as soon as `size` outputs "
    "are complete, so that one or two in a hundred differ. auto: ctranslate2 where its search is the same (greedy), "
    "else paddle_tfm.",
)


@click.command(name="evaluate")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--split", type=click.Choice(["train", "valid", "test"]), help="Default: test.")
@test_options
@search_option
@engine_option
@checkpoint_option
@click.option(
    "--hypotheses",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Score these translations of the split instead, a line each, of any system.",
)
@click.option(
    "--buckets",
    is_flag=False,
    flag_value=QUARTERS,
    metavar="[5,10,15]",
    help="Scores by length: up to 5 words, 6 to 10, … Without numbers: four buckets of like size.",
)
@click.option(
    "--by",
    type=click.Choice(["source", "target"]),
    help="Whose length makes the buckets. Default: source, if there is one.",
)
@click.option("--json", "file", metavar="FILE|-", help="Write the scores as JSON; - is standard output.")
@click.option("--csv", "csv_file", metavar="FILE|-", help="The same as CSV: all examples, then each bucket.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where predictions go. Default: beside the run's own.",
)
@plugin_option
@device_option
def command(
    run: Path, split: str | None, test, task, batch, padding, search, engine: str, checkpoint: str, hypotheses, buckets,
    by, file, csv_file, out, plugins, device,
) -> None:  # fmt: skip
    """Score the run in folder RUN on a split or on another test, and write its predictions beside it, or to --out.
    Scores are printed first: a folder that cannot be written costs none.

    \b
    Examples:
      paddle-tfm evaluate runs/reverse/default/seed-1
      paddle-tfm evaluate runs/quickstart/pre-layer/seed-1 --split valid --search "{name: beam, size: 10}"
      paddle-tfm evaluate runs/reverse --buckets 4,8 --by source --json scores.json
      paddle-tfm evaluate runs/reverse --hypotheses other-system.txt
      paddle-tfm evaluate runs/reverse --task "{test_min_length: 13, test_max_length: 14}"
      paddle-tfm evaluate runs/reverse --batch 1 --padding 20
    """
    from paddle_tfm.errors import UserError
    from paddle_tfm.recipe import yaml_lines

    for target, option in ((file, "--json"), (csv_file, "--csv"), (out, "--out")):
        if target is not None:
            check_output(str(target), None, option)
    if out is not None and hypotheses:
        raise UserError("--out is where predictions go, but --hypotheses brings them: use one of them")
    edges = scores.edges(buckets)
    if by and edges is None:
        raise UserError("--by says whose length makes the buckets: add --buckets")
    if hypotheses and search:
        raise UserError("--search chooses how the run decodes, but --hypotheses brings its texts: use one of them")
    if (batch or padding) and (hypotheses or engine != "paddle_tfm"):
        option = "--hypotheses" if hypotheses else f"--engine {engine}"
        raise UserError(f"--batch and --padding are of our own engine's batches; leave {option} out")
    registry = create_registry(plugins)
    device = use_device(device)
    from paddle_tfm.data.corpus import load_corpus
    from paddle_tfm.data.shapes import check_texts
    from paddle_tfm.export.engine import open_engine
    from paddle_tfm.predictions import predictions_file, squeezed
    from paddle_tfm.protocols import Prediction
    from paddle_tfm.recipe.sites import DECODER_ONLY
    from paddle_tfm.search.decoding import decode_all
    from paddle_tfm.train.evaluate import likelihood, predict, score, signatures, text_metrics
    from paddle_tfm.train.final_tests import changed, drift
    from paddle_tfm.train.run import load_run
    from paddle_tfm.units import AT

    loaded = load_run(run, registry, checkpoint, warn)
    has_source = loaded.settings.model.shape != DECODER_ONLY
    if not has_source and (search or by == "source" or engine == "ctranslate2"):
        option = "--search" if search else "--by source" if by == "source" else "--engine ctranslate2"
        raise UserError(
            f"{option} needs a model that reads a source, but {loaded.folder} is decoder-only; leave it out"
        )
    decoding = registry.build("search", yaml_lines.value(search), "--search") if search else loaded.search()
    of = tested(loaded, registry, split, test, task=task, batch=batch, padding=padding)
    split, conditions = of.split, of.conditions
    corpus = load_corpus(of.plan, [split])
    texts, then = corpus.splits[split], loaded.fingerprint.get(split)
    if then not in (None, corpus.fingerprint[split]):
        warn(f"{loaded.folder}: since it was trained, its {split} texts changed; older scores are of others")
    if not texts:
        raise UserError(f"{loaded.folder}: its task has no {split} split; try --split valid")
    metrics, examples = loaded.metrics(), loaded.codec.encode_all(texts)
    check_texts(loaded.settings.model, split, examples)
    if hypotheses:
        metrics, predictions = text_metrics(metrics), _read(hypotheses, texts, split)
        if not metrics:
            raise UserError(f"{loaded.folder}: each of its metrics needs the model; none can score {hypotheses}")
    elif not has_source:
        predictions = [Prediction(text.source, squeezed(text.target), "") for text in texts]
    else:
        exported = open_engine(loaded, engine, decoding, checkpoint, device=device, report=note)
        decoder = exported or functools.partial(decode_all, loaded.model, **conditions)
        predictions = predict(loaded.model, loaded.codec, examples, decoding, decode=decoder)

    def scored(rows: Sequence[int]) -> dict[str, float]:
        teacher_forced = None if hypotheses else likelihood(loaded.model, examples.select(rows), **conditions)
        return score(metrics, [predictions[i] for i in rows], teacher_forced)

    results: dict[str, object] = {
        "run": str(loaded.folder),
        "split": split,
        "test": {"name": of.label, **conditions} if of.label else None,
        "hypotheses": str(hypotheses) if hypotheses else None,
        "examples": len(predictions),
        "metrics": scored(range(len(predictions))),
        "signatures": signatures(metrics),
        "buckets": scores.by_length(predictions, by or ("source" if has_source else "target"), edges, scored)
        if edges is not None
        else None,
    }
    if conditions:
        usual = predict(loaded.model, loaded.codec, examples, decoding) if has_source else predictions
        results["changed_outputs"] = changed(usual, predictions)
        results["drift"] = drift(loaded, examples, conditions)
    data_alone = "-" in (file, csv_file)
    if not data_alone:
        scores.show(results, metrics)
    if has_source and not hypotheses:
        path = out or predictions_file(loaded.folder, split.partition(AT)[0], of.label)
        results["predictions"] = scores.write_beside(path, predictions, notes() if data_alone else console())
    scores.write_files(results, metrics, file, csv_file)


def _read(file: Path, texts: Sequence[Example], split: str) -> list[Prediction]:
    """Translations, a line for each example."""
    from paddle_tfm.errors import UserError
    from paddle_tfm.predictions import squeezed
    from paddle_tfm.protocols import Prediction

    try:
        lines = file.read_text("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8 text (byte {error.start})") from error
    if len(lines) != len(texts):
        raise UserError(f"{file} has {len(lines):,} lines, but the {split} split has {len(texts):,} examples; one each")
    return [Prediction(text.source, squeezed(text.target), squeezed(line)) for text, line in zip(texts, lines)]
