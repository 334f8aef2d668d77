"""`paddle-tfm export RUN`: a trained run for an engine made for decoding."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paddle_tfm.cli.common import console, create_registry, note, plugin_option, use_device, warn
from paddle_tfm.cli.evaluate import checkpoint_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from paddle_tfm.export.ctranslate2.rules import Rules
    from paddle_tfm.train.run import Run


@click.command(name="export")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--to", "target", type=click.Choice(["ctranslate2"]), required=True, help="The engine.")
@click.option(
    "--quantize",
    "quantization",
    type=click.Choice(["float32", "int8", "int16", "bfloat16"]),
    default="float32",
    show_default=True,
    help="Store numbers in fewer bits, and print what that costs on the validation split. On a CPU, int8 and "
    "int16 are also used in computations; bfloat16 only halves the file.",
)
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The folder to write. Default: export/ctranslate2 in the run's, or export/ctranslate2-int8, …",
)
@checkpoint_option
@plugin_option
def command(run, target, quantization, folder, checkpoint, plugins) -> None:
    """Write the run in folder RUN for CTranslate2, an engine in C++ that translates on a CPU about twice as fast as
    we do and needs no Paddle: model, vocabularies and tokenizers.

    Nothing is written unless greedy outputs of up to 200 validation sentences are the same as ours in float32. A
    component that CTranslate2 cannot hold is named. docs/export.md says what can be exported, and what to do with the
    folder. It needs the package ctranslate2: the extra [ctranslate2].

    \b
    Examples:
      paddle-tfm export runs/multi30k/default/seed-1 --to ctranslate2
      paddle-tfm export RUN --to ctranslate2 --quantize int8 --out model-int8
    """
    registry = create_registry(plugins)
    use_device("cpu")
    from paddle_tfm.export.ctranslate2.rules import Rules
    from paddle_tfm.export.ctranslate2.spec import load_ctranslate2
    from paddle_tfm.export.folder import export, export_folder
    from paddle_tfm.files import read_json
    from paddle_tfm.train.evaluate import text_metrics
    from paddle_tfm.train.run import load_run
    from paddle_tfm.units import metric_name, text

    load_ctranslate2()
    loaded = load_run(run, registry, checkpoint, warn)
    folder = folder or export_folder(loaded, quantization, checkpoint)
    rules = Rules(registry)
    compare = _comparison(loaded, rules) if quantization != "float32" and loaded.model.encoder is not None else None
    proof = export(loaded, rules, folder, quantization, checkpoint, compare, note)
    page = read_json(folder / "paddle_tfm.json")
    console().print(f"exported  {folder}", markup=False)
    console().print(f"float32   {proof.sentence()}", markup=False)
    for name, metric in text_metrics(loaded.metrics()).items():
        scores = {kind: values[name] for kind, values in page["scores"].items() if name in values}
        if scores:
            shown = ", ".join(f"{text(value, metric.unit)} in {kind}" for kind, value in scores.items())
            console().print(f"{metric_name(name)}  {shown}", markup=False)
    if not page["prompt_at_once"]:
        sentence = "feed prompts with include_prompt_in_result=True: CTranslate2 is wrong for this model otherwise"
        console().print(f"prompts   {sentence}", markup=False)


def _comparison(run: Run, rules: Rules) -> Callable[[Path], dict[str, object]]:
    """The metrics of texts that an export's translations of the validation split get, by the recipe's search."""
    from paddle_tfm.data.corpus import load_corpus
    from paddle_tfm.export.ctranslate2.decoder import ExportedDecoder
    from paddle_tfm.export.ctranslate2.variables import MIN_POSITIONS
    from paddle_tfm.train.evaluate import predict, score, text_metrics

    examples = run.codec.encode_all(load_corpus(run.plan, ["valid"]).splits["valid"])
    metrics, search = text_metrics(run.metrics()), run.search()

    def compare(folder: Path) -> dict[str, object]:
        codec, longest = run.codec, max(run.model.max_length, MIN_POSITIONS)
        sides = codec.source_vocabulary, codec.target_vocabulary
        decoder = ExportedDecoder(run.model, folder, rules.held, *sides, longest, scores=False)
        return dict(score(metrics, predict(run.model, codec, examples, search, decode=decoder), None))

    return compare
