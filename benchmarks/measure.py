"""The measurement: sides take turns at jobs, and each is a row beside ours; and the recipe that they are built from."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.process import Process
from benchmarks.sides import SEARCH, TRAINING, choose
from benchmarks.workload import STEPS
from paddle_tfm.errors import UserError
from paddle_tfm.recipe import loading as recipes
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.merging import override

SIZES: dict[str, dict[str, int]] = {
    "tiny": {"d_model": 64, "num_heads": 4, "d_ff": 256, "encoder_layers": 2, "decoder_layers": 2},
    "small": {"d_model": 256, "num_heads": 4, "d_ff": 1024, "encoder_layers": 3, "decoder_layers": 3},
    "base": {"d_model": 512, "num_heads": 8, "d_ff": 2048, "encoder_layers": 6, "decoder_layers": 6},
}
# What `paddle.nn.Transformer` has.
SAME: dict[str, object] = {
    "model.attention": "multihead",
    "model.norm": "layer",
    "model.placement": "pre",
    "model.position": "sinusoidal",
    "model.head": "linear",
    "model.share_embeddings": False,
    "train.accumulate": 1,
    "train.optimizer": "adam",
    "train.schedule": {"name": "constant", "learning_rate": 1e-4},
    "train.label_smoothing": 0.0,
}


def common_recipe(size: str, overrides: Sequence[str] = ()) -> dict:
    """The resolved recipe of one of `SIZES` with `overrides` on top: Multi30k's English and German where the folder
    ``PADDLE_TFM_DATA`` has it, otherwise the task `dates`; batches of 1,024 tokens.

    Raises:
        UserError: an override of what must be the same; whatever is wrong in one.
    """
    for key in (text.partition("=")[0].strip() for text in overrides):
        if any(f"{key}.".startswith(f"{path}.") for path in (*SAME, "model.feed_forward", "seeds", "variants")):
            raise UserError(f"override '{key}': the benchmark sets it to what `paddle.nn.Transformer` has")
    lines = [f"model.{key}={value}" for key, value in SIZES[size].items()]
    lines += [f"task={json.dumps(_text())}", "vocabulary.max_size=8000", "train.max_tokens=1024", "seeds=[1]"]
    loaded = recipes.load("base", [*lines, *overrides])
    for path, value in SAME.items():
        override(loaded.data, path, value, loaded.origins, {})
    # By default, `nn.Transformer` applies the same dropout to the hidden layer of the feed-forward.
    relu = {"name": "relu", "inner_dropout": loaded.data["model"]["dropout"]}
    override(loaded.data, "model.feed_forward", relu, loaded.origins, {})
    (spec,) = loaded.runs()
    return spec.data


def _text() -> dict:
    """The task, as in a recipe: Multi30k if it is there, otherwise `dates`."""
    folder = os.environ.get("PADDLE_TFM_DATA")
    for parent in (Path(folder) / "multi30k", Path(folder)) if folder else ():
        files = [parent / f"train.{language}.gz" for language in ("en", "de")]
        if all(file.is_file() for file in files):
            return {"name": "parallel", "train": [str(file.resolve()) for file in files]}
    return {"name": "dates"}


@dataclass(frozen=True)
class Row:
    """A side at a job.

    Args:
        seconds: of each turn. of_ours: those of our side. parts: steps or sentences of a turn. units: target tokens
            or sentences of a turn. same: in what its numbers are ours. peak_mib: the most memory that its processes
            held. computes: its threads, processes, precision, variables and settings.
    """

    side: str
    seconds: Sequence[float]
    of_ours: Sequence[float]
    parts: int
    units: int
    same: str
    peak_mib: int
    computes: Mapping[str, Any]

    @property
    def milliseconds(self) -> float:
        """The median of a step, or of a sentence."""
        return 1000 * statistics.median(self.seconds) / self.parts

    @property
    def per_second(self) -> float:
        """Target tokens, or sentences."""
        return self.units / statistics.median(self.seconds)

    @property
    def ratio(self) -> tuple[float, float, float]:
        """How many times as fast ours is: median, lowest and highest of the turns."""
        ratios = [theirs / ours for ours, theirs in zip(self.of_ours, self.seconds)]
        return statistics.median(ratios), min(ratios), max(ratios)

    @property
    def undisturbed(self) -> float:
        """How many times as fast ours is in the fastest turn of each."""
        return min(self.seconds) / min(self.of_ours)


def measure_step(
    size: str,
    overrides: Sequence[str] = (),
    sides: Collection[str] = (),
    rounds: int = 7,
    length: int | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """A training step of each side.

    Args:
        size: one of `SIZES`. overrides: ``a.b=value`` on top of `common_recipe`.
        sides: those to compare with ours; none: all that are installed.
        rounds: the turns of each side, after one warm-up, each of `STEPS` steps on other batches.
        length: of every source and target, cut from the concatenated texts. None: whole sentences.
        report: called with a sentence about each measurement.

    Raises:
        UserError: a setting is invalid, or a side cannot be had.
    """
    recipe = common_recipe(size, overrides)
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        folder = Path(name)
        (folder / "recipe.yaml").write_text(yaml_lines.dump(recipe), "utf-8")
        (folder / "request.json").write_text(json.dumps({"length": length}), "utf-8")
        return _take_turns("Training", TRAINING, sides, rounds, folder, report)["step"]


def measure_search(
    run: Path, sides: Collection[str] = (), rounds: int = 3, report: Callable[[str], None] = lambda text: None
) -> dict[str, list[Row]]:
    """The searches of each side with the weights of a run: `beam`, its test split in batches of similar length, and
    `greedy`, some of its sentences one at a time. PyTorch and JoeyNMT have multi-head attention, layer norm, sinusoidal
    positions, ReLU, pre- and post-norm; CTranslate2 what `export` can write. Arguments as for `measure_step`.

    Raises:
        UserError: there is no such run, or a side in `sides` has no such model.
    """
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        (Path(name) / "request.json").write_text(json.dumps({"run": str(run.resolve())}), "utf-8")
        return _take_turns("Search", SEARCH, sides, rounds, Path(name), report)


def _take_turns(
    what: str,
    jobs: Mapping[str, Sequence[str]],
    asked: Collection[str],
    rounds: int,
    folder: Path,
    report: Callable[[str], None],
) -> dict[str, list[Row]]:
    selection, rows = choose(asked, jobs), {}
    with ExitStack() as stack:
        processes: dict[str, Process] = {}
        lacking: Mapping[str, str] = {}
        for side in selection:  # ours first: it writes the workload of the others, and says what they lack
            if side in lacking and side in asked:
                raise UserError(f"the side '{side}' has no such model: {lacking[side]}")
            report(f"{side}: left out: {lacking[side]}" if side in lacking else f"{side}: loading")
            if side not in lacking:
                processes[side] = stack.enter_context(Process(side, what, folder))
                lacking = processes["ours"].facts.get("lacking", {})
        for job, able in jobs.items():
            turns: dict[str, list[dict]] = {side: [] for side in processes if side in able}
            for number in range(rounds + 1):
                report(f"{job}: " + (f"round {number} of {rounds}" if number else "warming up"))
                for side in turns:
                    turns[side].append(processes[side].turn(job, number))
            rows[job] = [_row(side, job, processes, turns) for side in turns]
    return rows


def _row(side: str, job: str, processes: Mapping[str, Process], turns: Mapping[str, list[dict]]) -> Row:
    facts, ours = processes[side].facts, processes["ours"].facts
    units, last = ours["units"][job], turns[side][-1]
    if side == "ours":
        same = ""
    elif "first_loss" in facts:
        same = f"first loss, {abs(facts['first_loss'] - ours['first_loss']):.0e} from ours"
    else:
        outputs = zip(turns["ours"][-1]["outputs"], last["outputs"])
        same = f"{sum(a == b for a, b in outputs) / units:.1%} of outputs"
    seconds = {each: [turn["seconds"] for turn in turns[each][1:]] for each in ("ours", side)}
    parts = STEPS if job == "step" else units
    return Row(side, seconds[side], seconds["ours"], parts, units, same, last["peak_mib"], facts)
