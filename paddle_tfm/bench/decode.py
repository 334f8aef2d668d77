"""Decoding times of one trained run, in our engine and in others.

`ours` is the engine; `ours-uncached` the engine without its key/value cache, which recomputes every prefix; `joeynmt`
and `ctranslate2` are the searches of these libraries with the same weights, `torch-tuned` is `nn.Transformer` in
PyTorch's inference mode, without a cache, for it has none. Two jobs: `beam`, the test split in batches
of similar length; `single`, some of its sentences one at a time, greedy.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from paddle_tfm.bench.process import Worker
from paddle_tfm.bench.sides import DECODING, JOBS, choose
from paddle_tfm.bench.step import spread
from paddle_tfm.bench.surroundings import machine, versions
from paddle_tfm.errors import UserError

FACTS = ("threads", "processes", "precision", "variables", "settings")  # of a side
PEERS, EXPORTED = ("torch-tuned", "joeynmt"), ("ours-ctranslate2", "ctranslate2")
# The components of the peers' Transformers: weights can be copied between equal models only.
PEERS_HAVE = {
    "attention": ("multihead",),
    "norm": ("layer",),
    "position": ("sinusoidal",),
    "placement": ("pre", "post"),
    "feed_forward": ("relu",),
    "head": ("linear", "tied"),
}


def measure_decoding(
    run: str | Path,
    rounds: int = 3,
    beam: int = 5,
    alpha: float = 1.0,
    sentences: int | None = None,
    singles: int = 50,
    sides: Sequence[str] | None = None,
    plugins: Sequence[str | Path] = (),
    report: Callable[[str], None] = lambda text: None,
) -> dict:
    """The seconds that each side takes for each job, as data for JSON.

    Args:
        run: the folder of a trained run. PyTorch and JoeyNMT have multi-head attention, layer norm, sinusoidal
            positions, ReLU, pre- and post-norm; CTranslate2 what `export` can write.
        rounds: the number of measurements of each side, after one warm-up.
        beam, alpha: of the beam search. sentences: how many of the test split, None: all. singles: how many one at a
            time.
        sides: some of `DECODING`; None: those whose package is installed and which have such a model.

    Returns:
        machine, versions and sizes; for each of `sides.JOBS` in `sides` the median, lowest and highest seconds and the
        sentences a second; in `ratio`, for each other side, how many times as fast ours is in the same round; in
        `same`, the share of sentences for which it wrote what ours wrote.

    Raises:
        UserError: there is no such run or side, or a side in `sides` has no such model.
    """
    selection = choose(sides, DECODING)
    if rounds < 1:
        raise UserError(f"`rounds` must be at least 1, but is {rounds}")
    surroundings = machine()
    with tempfile.TemporaryDirectory(prefix="paddle-tfm-bench-") as name, ExitStack() as stack:
        request = {
            "run": str(Path(run).resolve()),
            "beam": beam,
            "alpha": alpha,
            "sentences": sentences,
            "singles": singles,
            "export": not {*EXPORTED}.isdisjoint(selection),
        }
        request["plugins"] = [str(Path(file).resolve()) for file in plugins]
        load = {"load": name, "decoding": request}
        report("ours: loading")
        ours = stack.enter_context(Worker("ours", Path(name)))
        facts = {"ours": ours.ask(load)}  # first: it writes the workload of the others, and says what they lack
        lacking = {side: reason for side, reason in facts["ours"]["lacking"].items() if side in selection}
        for side, reason in lacking.items():
            if sides:
                raise UserError(f"{run}: the side '{side}' has no such model: {reason}")
            report(f"{side}: left out: {reason}")
        others = [side for side in selection if side not in {"ours", *lacking}]
        workers = {"ours": ours} | {side: stack.enter_context(Worker(side, Path(name))) for side in others}
        for side in others:
            report(f"{side}: loading")
            facts[side] = workers[side].ask(load)
        jobs = {}
        for job, job_sides in JOBS.items():
            seconds: dict[str, list[float]] = {side: [] for side in workers if side in job_sides}
            outputs: dict[str, list] = {}
            for number in range(rounds + 1):
                report(f"{job}: " + (f"round {number} of {rounds}" if number else "warming up"))
                for side in seconds:
                    answer = workers[side].ask({"decode": job})
                    outputs[side] = answer["ids"]
                    seconds[side] += [answer["seconds"]] if number else []
            jobs[job] = summary(seconds, outputs)
            for side, figures in jobs[job]["sides"].items():
                figures |= {name: facts[side][name] for name in FACTS}
    return {
        "machine": surroundings | {"device": facts["ours"]["device"]},
        "versions": versions(),
        "run": request["run"],
        "sizes": facts["ours"]["sizes"],
        "beam": beam,
        "alpha": alpha,
        "rounds": rounds,
        "jobs": jobs,
    }


def summary(seconds: dict[str, list[float]], outputs: dict[str, list]) -> dict:
    """`sides`, `ratio` and `same` of one job, from the seconds of each round and the outputs of each side."""
    number, ours = len(outputs["ours"]), outputs["ours"]
    sides, ratio, same = {}, {}, {}
    for side, times in seconds.items():
        sides[side] = spread(times, 3) | {"sentences_per_second": round(number / statistics.median(times), 2)}
        if side != "ours":
            ratio[side] = spread([theirs / mine for mine, theirs in zip(seconds["ours"], times)], 3)
            same[side] = round(sum(a == b for a, b in zip(ours, outputs[side])) / number, 4)
    return {"sentences": number, "sides": sides, "ratio": ratio, "same": same}
