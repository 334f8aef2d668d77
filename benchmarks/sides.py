"""The sides of a benchmark: what each is called, which package it needs and in which environment it runs."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddle_tfm import blas, runtime
from paddle_tfm.errors import UserError, unknown

ROOT = Path(__file__).parents[1]  # the clone
PEERS_HELP = (
    'For PyTorch and CTranslate2: pip install -e ".[bench]"; for JoeyNMT also: pip install tensorboard '
    "importlib_metadata, and pip install --no-deps joeynmt==2.3.0 subword-nmt (its other dependencies are old, and a "
    "model does not need them)."
)
# The variables that tune one of the libraries; a side that is not prepared starts without the user's.
TUNING = ("OMP_", "MKL_", "KMP_", "FLAGS_", "MALLOC_", "GLIBC_TUNABLES", "GLOG_", "DNNL_", "ONEDNN_", "ATEN_")


@dataclass(frozen=True)
class Side:
    """What a side is.

    Args:
        title: its name in tables. module: of `benchmarks.libraries`. package: what it needs. first: what its process
            imports first, which decides whether a library finds the environment that `paddle_tfm.runtime` prepares.
        prepared: whether `paddle_tfm.runtime` prepares its environment.
        threaded: whether it is set to as many threads as we use; otherwise it has the number that it comes with.
        flag: of the processor, without which the side is left out unless it is asked for.
    """

    title: str
    module: str
    package: str
    first: str
    prepared: bool = False
    threaded: bool = True
    flag: str = ""


SIDES: dict[str, Side] = {
    "ours": Side("paddle_tfm", "ours", "paddle", "paddle_tfm", prepared=True),
    "ours-bfloat16": Side(
        "paddle_tfm, train.products: bfloat16", "ours", "paddle", "paddle_tfm", prepared=True, flag="avx512_bf16"
    ),
    "ours-ctranslate2": Side("paddle_tfm, --engine ctranslate2", "ours", "ctranslate2", "paddle_tfm", prepared=True),
    "paddle": Side("paddle.nn.Transformer, default settings", "paddle_nn", "paddle", "paddle", threaded=False),
    "paddle-tuned": Side(
        "paddle.nn.Transformer, our runtime settings", "paddle_nn", "paddle", "paddle_tfm", prepared=True
    ),
    "torch": Side("PyTorch nn.Transformer", "pytorch", "torch", "torch"),
    "torch-tuned": Side("PyTorch nn.Transformer, its fastest settings", "pytorch_tuned", "torch", "torch"),
    "torch-bfloat16": Side(
        "PyTorch nn.Transformer, its fastest settings, bfloat16", "pytorch_tuned", "torch", "torch", flag="avx512_bf16"
    ),
    "torch-compile": Side("PyTorch nn.Transformer, torch.compile", "pytorch", "torch", "torch"),
    "joeynmt": Side("JoeyNMT", "joeynmt", "joeynmt", "torch"),
    "ctranslate2": Side("CTranslate2, float32", "ctranslate2", "ctranslate2", "ctranslate2"),
}
# job → the sides that do it
TRAINING: dict[str, Sequence[str]] = {
    "step": (
        *("ours", "ours-bfloat16", "paddle", "paddle-tuned"),
        *("torch", "torch-tuned", "torch-bfloat16", "torch-compile", "joeynmt"),
    )
}
SEARCH: dict[str, Sequence[str]] = {
    "beam": ("ours", "ours-ctranslate2", "joeynmt", "ctranslate2"),
    "greedy": ("ours", "ours-ctranslate2", "torch-tuned", "joeynmt", "ctranslate2"),
}


def choose(sides: Collection[str], jobs: Mapping[str, Sequence[str]]) -> list[str]:
    """`ours` and those of `sides` that do one of `jobs`; without `sides`, all whose package is installed and whose
    flag the processor has.

    Raises:
        UserError: there is no such side, or its package is missing.
    """
    possible = [side for side in SIDES if any(side in able for able in jobs.values())]
    lacking = {side for side in possible if importlib.util.find_spec(SIDES[side].package) is None}
    for side in sides:
        if side not in SIDES:
            raise UserError(unknown("side", side, SIDES))
        if side in lacking:
            raise UserError(f"the side '{side}' needs {SIDES[side].package}. {PEERS_HELP}")
    if not sides:
        flags = blas.Processor.read().flags
        sides = [side for side in possible if side not in lacking and SIDES[side].flag in {"", *flags}]
    return [side for side in possible if side in {"ours", *sides}]


def environment(side: str) -> dict[str, str]:
    """The environment variables of a side: the user's, and for another library without those that tune Paddle. PyTorch
    uses as many threads as we do."""
    variables = runtime.users_environment()
    if not SIDES[side].prepared:
        variables = {name: value for name, value in variables.items() if not name.startswith(TUNING)}
        variables["MALLOC_PERTURB_"] = "0"  # changes nothing, but keeps `runtime.prepare` from tuning malloc
        if SIDES[side].threaded:
            variables["OMP_NUM_THREADS"] = str(runtime.threads())
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), variables.get("PYTHONPATH"))))
    return variables


def tuning(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of a process' environment variables that tune a library, but for the number of threads, which a table
    states, and for what changes nothing."""
    nothing = ("OMP_NUM_THREADS", "MALLOC_PERTURB_", "GLOG_minloglevel")
    return {name: variables[name] for name in sorted(variables) if name.startswith(TUNING) and name not in nothing}
