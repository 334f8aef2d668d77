"""The sides of a benchmark: what each is called, which package it needs and in which environment it runs."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from paddle_tfm import blas, runtime
from paddle_tfm.errors import UserError, unknown

PEERS_HELP = (
    'For PyTorch and CTranslate2: pip install torch ctranslate2 (in a clone: pip install -e ".[bench]"); for JoeyNMT '
    "also: pip install tensorboard importlib_metadata, and pip install --no-deps joeynmt==2.3.0 subword-nmt (its other "
    "dependencies are old, and a model does not need them)."
)
# The variables that tune one of the libraries; a side that is not prepared starts without the user's.
TUNING = ("OMP_", "MKL_", "KMP_", "FLAGS_", "MALLOC_", "GLIBC_TUNABLES", "GLOG_", "DNNL_", "ONEDNN_", "ATEN_")


@dataclass(frozen=True)
class Kind:
    """What a side is.

    Args:
        title: its name in tables. package: what it needs; those that are not Paddle's come with the extra `[bench]`.
        first: what its process imports first. prepared: whether `paddle_tfm.runtime` prepares its environment.
        threaded: whether it is set to as many threads as we use; otherwise it has the number that it comes with.
        overrides: lines on top of the recipe, for a side of ours. flag: of the processor, without which the side is
            left out unless it is asked for.
    """

    title: str
    package: str
    first: str
    prepared: bool = False
    threaded: bool = True
    overrides: Sequence[str] = ()
    flag: str | None = None


KINDS: dict[str, Kind] = {
    "ours": Kind("paddle_tfm", "paddle", "paddle_tfm", prepared=True),
    "ours-bfloat16": Kind(
        "paddle_tfm, train.products: bfloat16",
        "paddle",
        "paddle_tfm",
        prepared=True,
        overrides=("train.products=bfloat16",),
        flag="avx512_bf16",
    ),
    "ours-ctranslate2": Kind("paddle_tfm, --engine ctranslate2", "ctranslate2", "paddle_tfm", prepared=True),
    "ours-uncached": Kind("paddle_tfm without key/value cache", "paddle", "paddle_tfm", prepared=True),
    "paddle": Kind("paddle.nn.Transformer, default settings", "paddle", "paddle", threaded=False),
    "paddle-tuned": Kind("paddle.nn.Transformer, our runtime settings", "paddle", "paddle_tfm", prepared=True),
    "torch": Kind("PyTorch nn.Transformer", "torch", "torch"),
    "torch-tuned": Kind("PyTorch nn.Transformer, its fastest settings here", "torch", "torch"),
    "torch-compile": Kind("PyTorch nn.Transformer, torch.compile", "torch", "torch"),
    "joeynmt": Kind("JoeyNMT", "joeynmt", "torch"),
    "ctranslate2": Kind("CTranslate2, float32", "ctranslate2", "ctranslate2"),
}
TRAINING = ("ours", "ours-bfloat16", "paddle", "paddle-tuned", "torch", "torch-tuned", "torch-compile", "joeynmt")
# job → the sides that do it
JOBS: dict[str, Sequence[str]] = {
    "beam": ("ours", "ours-ctranslate2", "joeynmt", "ctranslate2"),
    "single": ("ours", "ours-ctranslate2", "ours-uncached", "torch-tuned", "joeynmt", "ctranslate2"),
}
DECODING = tuple(side for side in KINDS if any(side in sides for sides in JOBS.values()))


def choose(sides: Sequence[str] | None, possible: Collection[str]) -> list[str]:
    """`ours` and `sides`, in the order of `possible`; without `sides`, all whose package is installed and whose flag
    the processor has.

    Raises:
        UserError: there is no such side, or its package is missing.
    """
    lacking = {side for side in possible if importlib.util.find_spec(KINDS[side].package) is None}
    for side in sides or ():
        if side not in possible:
            raise UserError(unknown("side", side, possible))
        if side in lacking:
            raise UserError(f"the side '{side}' needs {KINDS[side].package}. {PEERS_HELP}")
    if not sides:
        flags = blas.Processor.read().flags
        sides = [side for side in possible if side not in lacking and (KINDS[side].flag or "") in {"", *flags}]
    return [side for side in possible if side in {"ours", *sides}]


def environment(side: str) -> dict[str, str]:
    """The environment variables of a side: the user's, and for another library without those that tune Paddle. PyTorch
    uses as many threads as we do."""
    variables = runtime.users_environment()
    if not KINDS[side].prepared:
        variables = {name: value for name, value in variables.items() if not name.startswith(TUNING)}
        variables["MALLOC_PERTURB_"] = "0"  # changes nothing, but keeps `runtime.prepare` from tuning malloc
        if KINDS[side].threaded:
            variables["OMP_NUM_THREADS"] = str(runtime.threads())
    return variables


def tuning(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of a process' environment variables that tune a library, but for the number of threads, which a table
    states, and for what changes nothing."""
    nothing = ("OMP_NUM_THREADS", "MALLOC_PERTURB_", "GLOG_minloglevel")
    return {name: variables[name] for name in sorted(variables) if name.startswith(TUNING) and name not in nothing}
