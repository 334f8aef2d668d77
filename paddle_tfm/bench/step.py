"""The time of one training step, in our engine and in other libraries.

`ours` is the engine; `paddle` the same model written with `paddle.nn.Transformer`, in an unchanged environment;
`paddle-tuned` that one with the settings of `paddle_tfm.runtime`; `torch` the same model written with PyTorch's
`nn.Transformer`, `torch-compile` that one compiled; `joeynmt` JoeyNMT's own. Settings have an effect only before a
library is imported, so each side has its own process. The sides take turns of a few steps, so that other work on the
machine slows all of them alike; ratios are computed within a turn.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, cast

from paddle_tfm import runtime
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.recipe import loading as recipes
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.merging import override

# Side → the package that it needs; those that are not Paddle's come with the extra `[bench]`.
SIDES = {
    "ours": "paddle",
    "paddle": "paddle",
    "paddle-tuned": "paddle",
    "torch": "torch",
    "torch-compile": "torch",
    "joeynmt": "joeynmt",
}
PREPARED = ("ours", "ours-uncached", "paddle-tuned")  # whose environment `paddle_tfm.runtime` prepares
FIRST = {"paddle": "paddle", "ctranslate2": "ctranslate2"}  # what a side imports first, where it is not PyTorch
PEERS_HELP = (
    'For PyTorch and CTranslate2: pip install torch ctranslate2 (in a clone: pip install -e ".[bench]"); for JoeyNMT '
    "also: pip install tensorboard importlib_metadata, and pip install --no-deps joeynmt==2.3.0 subword-nmt (its other "
    "dependencies are old, and a model does not need them)."
)
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"d_model": 64, "num_heads": 4, "d_ff": 256, "encoder_layers": 2, "decoder_layers": 2},
    "small": {"d_model": 256, "num_heads": 4, "d_ff": 1024, "encoder_layers": 3, "decoder_layers": 3},
    "base": {"d_model": 512, "num_heads": 8, "d_ff": 2048, "encoder_layers": 6, "decoder_layers": 6},
}
PLACEMENTS = ("pre", "post")
# What `paddle.nn.Transformer` has, in place of the recipe's values; data, sizes and dropout are the recipe's.
SAME: dict[str, object] = {
    "model.attention": "multihead",
    "model.norm": "layer",
    "model.position": "sinusoidal",
    "model.head": "linear",
    "model.share_embeddings": False,
    "train.accumulate": 1,
    "train.optimizer": "adam",
    "train.schedule": {"name": "constant", "learning_rate": 1e-4},
    "train.label_smoothing": 0.0,
}
TUNING = ("OMP_", "MKL_", "KMP_", "FLAGS_", "MALLOC_", "GLIBC_TUNABLES", "GLOG_")


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
        size: one of `SIZES` instead of the recipe's. None: the recipe's; without a recipe, `small`.
        placement: pre | post.
        rounds: the number of turns of each side, after one warm-up. steps: in a turn, each on another batch.
        sides: some of `SIDES` to compare with ours. None: those whose package is installed.
        length: of every source and target, cut from the concatenated texts. None: whole sentences.
        plugins: files for `--plugin`.
        report: called with a sentence about each measurement.

    Returns:
        machine, versions, sizes, rounds and steps; `first_loss` of each side with copied weights and without dropout,
        and the largest `difference` from ours; in `sides`, for each side, the median, lowest and highest milliseconds a
        step of the rounds, the median target tokens per second, and the MiB that its process held once loaded and at
        most; in `ratio`, for each other side, how many times as
        many tokens per second ours does in the same round (median, low, high), and in the fastest round of each
        (`undisturbed`).

    Raises:
        UserError: a setting is invalid.
    """
    selection = choose(sides)
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


def summary(seconds: dict[str, list[float]], facts: dict[str, dict], steps: int) -> dict:
    """`first_loss`, `sides` and `ratio` from the seconds of each side in each round."""
    tokens = sum(facts["ours"]["tokens"])
    losses = {side: fact["first_loss"] for side, fact in facts.items()}
    sides, ratio = {}, {}
    for side, durations in seconds.items():
        times = spread([1000 * second / steps for second in durations], 2)
        sides[side] = {f"{name}_ms": value for name, value in times.items()} | {
            "tokens_per_second": round(tokens / statistics.median(durations), 1),
            **{name: facts[side][name] for name in ("threads", "loaded_mib", "peak_mib")},
        }
        if side != "ours":
            ratio[side] = spread([theirs / ours for ours, theirs in zip(seconds["ours"], durations)], 3)
            ratio[side]["undisturbed"] = round(min(durations) / min(seconds["ours"]), 3)
    return {
        "first_loss": {**losses, "difference": max(abs(loss - losses["ours"]) for loss in losses.values())},
        "sides": sides,
        "ratio": ratio,
    }


def spread(values: Sequence[float], digits: int) -> dict[str, float]:
    """Median, lowest and highest."""
    spread = {"median": statistics.median(values), "low": min(values), "high": max(values)}
    return {name: round(value, digits) for name, value in spread.items()}


# ------------------------------------------------------------------------------------------------------------- settings


def choose(sides: Sequence[str] | None = None, known: Mapping[str, str] = SIDES) -> list[str]:
    """`ours` and `sides`, in the order of `known`; without `sides`, all whose package is installed.

    Raises:
        UserError: there is no such side, or its package is missing.
    """
    lacking = {side: package for side, package in known.items() if importlib.util.find_spec(package) is None}
    for side in sides or ():
        if side not in known:
            raise UserError(unknown("side", side, known))
        if side in lacking:
            raise UserError(f"the side '{side}' needs {lacking[side]}. {PEERS_HELP}")
    selection = {"ours", *(sides or known)}
    return [side for side in known if side in selection and (sides or side not in lacking)]


def settings(
    recipe: str | None = None, overrides: Sequence[str] = (), size: str | None = None, placement: str = "pre"
) -> dict:
    """The resolved recipe that all sides are built from; arguments as for `measure`.

    Raises:
        UserError: an unknown size or placement; an override of what must be the same; whatever is wrong in the recipe.
    """
    size = "small" if size is None and recipe is None else size
    if size is not None and size not in SIZES:
        raise UserError(unknown("size", size, SIZES))
    if placement not in PLACEMENTS:
        raise UserError(unknown("placement", placement, PLACEMENTS))
    for key in (text.partition("=")[0].strip() for text in overrides):
        if any(f"{key}.".startswith(f"{path}.") for path in (*SAME, "model.placement", "model.feed_forward")):
            raise UserError(f"override '{key}': the benchmark sets it to what `paddle.nn.Transformer` has")
    lines = [f"model.{key}={value}" for key, value in ({} if size is None else SIZES[size]).items()]
    if recipe is None:
        lines += [f"task={json.dumps(_text())}", "vocabulary.max_size=8000", "train.max_tokens=1024"]
    loaded = recipes.load(recipe or "base", [*lines, *overrides])
    for path, value in {**SAME, "model.placement": placement}.items():
        override(loaded.data, path, value, loaded.origins, {})
    # By default, `nn.Transformer` applies the same dropout to the hidden layer of the feed-forward.
    relu = {"name": "relu", "inner_dropout": loaded.data["model"].get("dropout", 0.0)}
    override(loaded.data, "model.feed_forward", relu, loaded.origins, {})
    for key in ("variants", "grid", "baseline"):
        loaded.data.pop(key, None)
    if isinstance(loaded.data.get("seeds"), list):
        loaded.data["seeds"] = loaded.data["seeds"][:1]
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


# -------------------------------------------------------------------------------------------------------------- workers


def prepare(
    folder: Path, resolved: dict, batches: int, plugins: Sequence[str | Path] = (), length: int | None = None
) -> None:
    """Write the recipe and the request for the worker of our side."""
    (folder / "recipe.yaml").write_text(yaml_lines.dump(resolved), "utf-8")
    request = {"batches": batches, "length": length, "plugins": [str(Path(file).resolve()) for file in plugins]}
    (folder / "request.json").write_text(json.dumps(request), "utf-8")


class Worker:
    """The process of one side; `ask` sends it a request and waits for the answer."""

    def __init__(self, side: str, folder: Path):
        self.side, self.log = side, folder / f"{side}.log"
        # The first import decides whether Paddle loads in an unchanged environment or in a prepared one.
        first = "paddle_tfm" if side in PREPARED else FIRST.get(side, "torch")
        code = f"import {first}\nfrom paddle_tfm.bench.worker import main\nmain({side!r})"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(side),
                encoding="utf-8",
            )
        # Not None, as both are pipes.
        self.requests, self.answers = cast(IO[str], self.process.stdin), cast(IO[str], self.process.stdout)

    def __enter__(self) -> Worker:
        return self

    def ask(self, request: dict) -> dict:
        """The answer.

        Raises:
            UserError: the side raised one. RuntimeError: its process ended; its last lines are quoted.
        """
        try:
            self.requests.write(json.dumps(request) + "\n")
            self.requests.flush()
            line = self.answers.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            status, last = self.process.wait(), self.log.read_text("utf-8", errors="replace")[-2000:]
            raise RuntimeError(f"the benchmark's side '{self.side}' ended with status {status}:\n{last}")
        answer = json.loads(line)
        if answer["error"] is not None:
            raise UserError(answer["error"])
        return answer["value"]

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.requests, self.answers):
            try:
                pipe.close()
            except BrokenPipeError:
                continue


def environment(side: str) -> dict[str, str]:
    """The environment variables of a side: the user's, without those that `runtime.prepare` added in this process, and
    for another library without those that tune Paddle. PyTorch uses as many threads as we do."""
    added = {setting.name for setting in runtime.SETTINGS if not setting.by_user or runtime.too_late}
    variables = {name: value for name, value in os.environ.items() if name not in added}
    if side not in PREPARED:
        variables = {name: value for name, value in variables.items() if not name.startswith(TUNING)}
        variables["MALLOC_PERTURB_"] = "0"  # changes nothing, but keeps `runtime.prepare` from tuning malloc
    if side not in PREPARED and side != "paddle":
        variables["OMP_NUM_THREADS"] = str(runtime.threads())
    return variables


# --------------------------------------------------------------------------------------------------------- surroundings


def machine() -> dict[str, object]:
    """Processor, cores and system, and the load average of the minute before: other work slows a side of many threads
    more than one of a single thread, so ratios from a busy machine are unreliable."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="ignore").splitlines()
        processor = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), processor)
    except OSError:
        pass
    return {
        "processor": processor,
        "cores": runtime.physical_cores(),
        "logical_cores": os.cpu_count() or 1,
        "system": platform.platform(),
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def versions() -> dict[str, str]:
    """The versions of the libraries that determine the speed."""
    installed = runtime.installed_paddle()
    others = ("numpy", "torch", "joeynmt", "ctranslate2")
    return {
        "paddle": " ".join(installed) if installed else "missing",
        "paddle_tfm": importlib.metadata.version("paddle-tfm"),
        **{name: importlib.metadata.version(name) for name in others if importlib.util.find_spec(name) is not None},
        "python": platform.python_version(),
    }
