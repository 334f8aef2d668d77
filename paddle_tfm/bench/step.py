"""The time of one training step, in our engine and in other libraries.

`ours` is the engine; `paddle` the same model written with `paddle.nn.Transformer`, in an unchanged environment;
`paddle-tuned` that one with the settings of `paddle_tfm.runtime`; `torch` the same model written with PyTorch's
`nn.Transformer`, `torch-tuned` that one with whatever makes it fastest on this machine, `torch-compile` that one
compiled; `joeynmt` JoeyNMT's own. Settings have an effect only before a library is imported, so each side has its own
process. The sides take turns of a few steps, so that other work on the machine slows all of them alike; ratios are
computed within a turn.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from paddle_tfm.bench.process import Worker
from paddle_tfm.bench.settings import prepare, settings
from paddle_tfm.bench.sides import TRAINING, choose
from paddle_tfm.bench.sizes import SIZES
from paddle_tfm.bench.surroundings import machine, versions
from paddle_tfm.errors import UserError, unknown

FACTS = ("threads", "processes", "precision", "variables", "settings", "loaded_mib", "peak_mib")  # of a side


def measure(
    recipe: str | None = None,
    overrides: Sequence[str] = (),
    size: str | None = None,
    placement: str = "pre",
    rounds: int = 7,
    steps: int = 4,
    sides: Sequence[str] | None = None,
    length: int | None = None,
    plugins: Sequence[str | Path] = (),
    report: Callable[[str], None] = lambda text: None,
) -> dict:
    """Times, tokens per second, memory and the first loss of each side, as data for JSON.

    Args:
        recipe: its data, sizes and dropout are used. None: Multi30k's English and German where the folder
            ``PADDLE_TFM_DATA`` has it, otherwise the task `dates`; batches of 1,024 tokens.
        overrides: ``a.b=value`` on top.
        size: one of `sizes.SIZES` instead of the recipe's. None: the recipe's; without a recipe, `small`.
        placement: pre | post.
        rounds: the number of turns of each side, after one warm-up. steps: in a turn, each on another batch.
        sides: some of `sides.TRAINING` to compare with ours. None: those whose package is installed.
        length: of every source and target, cut from the concatenated texts. None: whole sentences.
        plugins: files for `--plugin`.
        report: called with a sentence about each measurement.

    Returns:
        machine, versions, sizes, rounds and steps; `first_loss` of each side with copied weights and without dropout,
        and the largest `difference` from ours of a side that computes in float32; in `sides`, for each side, the
        median, lowest and highest milliseconds a step of the rounds, the median target tokens per second, the MiB that
        its process held once loaded and at most, and its threads, processes, precision, variables and settings; in
        `ratio`, for each other side, how many times as many tokens per second ours does in the same round (median, low,
        high), and in the fastest round of each (`undisturbed`).

    Raises:
        UserError: a setting is invalid.
    """
    selection = choose(sides, TRAINING)
    long = [] if length is None else [f"model.max_length={length}"]
    resolved = settings(recipe, [*long, *overrides], size, placement)
    for name, value in (("rounds", rounds), ("steps", steps), ("length", 1 if length is None else length)):
        if value < 1:
            raise UserError(f"`{name}` must be at least 1, but is {value}")
    surroundings = machine()
    with tempfile.TemporaryDirectory(prefix="paddle-tfm-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        prepare(folder, resolved, steps, plugins, length)
        workers = {side: stack.enter_context(Worker(side, folder)) for side in selection}
        facts = {}
        for side, worker in workers.items():  # ours first: it writes the workload of the others
            report(f"{side}: loading")
            facts[side] = worker.ask({"load": name})
        seconds: dict[str, list[float]] = {side: [] for side in selection}
        for number in range(rounds + 1):
            report(f"round {number} of {rounds}" if number else "warming up")
            for side, worker in workers.items():
                answer = worker.ask({"first": number * steps, "steps": steps})
                seconds[side] += [sum(answer["seconds"])] if number else []
                facts[side]["peak_mib"] = answer["peak_mib"]
    return {
        "machine": surroundings | {"device": facts["ours"]["device"]},
        "versions": versions(),
        "size": size or ("small" if recipe is None else None),
        "recipe": resolved["name"],
        "task": resolved["task"],
        "sizes": facts["ours"]["sizes"],
        "rounds": rounds,
        "steps": steps,
        **summary(seconds, facts, steps),
    }


# The quantity that grows → its values, and the arguments of `measure` for a value.
GROWTH: dict[str, tuple[Sequence[int], Callable[[int], dict]]] = {
    "length": ((64, 128, 256, 512, 1024, 2048), lambda n: {"length": n, "overrides": ["train.max_tokens=2048"]}),
    "batch": ((256, 512, 1024, 2048, 4096), lambda n: {"overrides": [f"train.max_tokens={n}"]}),
    "vocabulary": ((1000, 2000, 4000, 8000, 16000), lambda n: {"overrides": [f"vocabulary.max_size={n}"]}),
}


def measure_growth(
    what: str,
    values: Sequence[int] | None = None,
    overrides: Sequence[str] = (),
    report: Callable[[str], None] = lambda text: None,
    **arguments: Any,
) -> list[dict]:
    """`measure` for growing lengths (tokens a side, in batches of at least 2,048), batches (tokens) or vocabularies (of
    each side, at most), every value in new processes, so that memory is measured for it alone.

    Args:
        what: length | batch | vocabulary. values: None: those of `GROWTH`. arguments: further arguments of `measure`.

    Returns:
        what `measure` returns, for each value, with the value under the name of `what`.

    Raises:
        UserError: `what` is none of these, or `measure` raises.
    """
    if what not in GROWTH:
        raise UserError(unknown("growth", what, GROWTH))
    defaults, arguments_at = GROWTH[what]
    rows = []
    for value in values or defaults:
        report(f"{what} {value:,}")
        more = arguments_at(value)
        more["overrides"] = [*more["overrides"], *overrides]
        rows.append({what: value, **measure(**more, report=report, **arguments)})
    return rows


def measure_sizes(report: Callable[[str], None] = lambda text: None, **arguments: Any) -> Iterator[dict]:
    """`measure` for every one of `sizes.SIZES`, each in new processes, and each given as soon as it is known.

    Args:
        arguments: further arguments of `measure`.
    """
    for size in SIZES:
        report(f"size {size}")
        yield measure(size=size, report=report, **arguments)


def summary(seconds: dict[str, list[float]], facts: dict[str, dict], steps: int) -> dict:
    """`first_loss`, `sides` and `ratio` from the seconds of each side in each round."""
    tokens = sum(facts["ours"]["tokens"])
    losses = {side: fact["first_loss"] for side, fact in facts.items()}
    alike = [loss for side, loss in losses.items() if facts[side]["precision"] == "float32"]
    sides, ratio = {}, {}
    for side, durations in seconds.items():
        times = spread([1000 * second / steps for second in durations], 2)
        sides[side] = {f"{name}_ms": value for name, value in times.items()} | {
            "tokens_per_second": round(tokens / statistics.median(durations), 1),
            **{name: facts[side][name] for name in FACTS},
        }
        if side != "ours":
            ratio[side] = spread([theirs / ours for ours, theirs in zip(seconds["ours"], durations)], 3)
            ratio[side]["undisturbed"] = round(min(durations) / min(seconds["ours"]), 3)
    return {
        "first_loss": {**losses, "difference": max(abs(loss - losses["ours"]) for loss in alike)},
        "sides": sides,
        "ratio": ratio,
    }


def spread(values: Sequence[float], digits: int) -> dict[str, float]:
    """Median, lowest and highest."""
    spread = {"median": statistics.median(values), "low": min(values), "high": max(values)}
    return {name: round(value, digits) for name, value in spread.items()}
