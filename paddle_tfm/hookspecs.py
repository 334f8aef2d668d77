"""Every hook of paddle_tfm: two verbs, `register_<kind>s` (and `register_ctranslate2_rules`) and `on_<event>`.

A **register** hook returns ``dict[str, type | str]``: the name in recipes → the class, or its location as
``"package.module:Class"``. Prefer the string: with it, `paddle-tfm ls` need not import Paddle. A component with a
deliberate mistake is marked: ``WrongOnPurpose("package.module:Class")``. The hook must have no side effects; it is
called once.

An **on** hook is a listener and returns nothing. One that raises is reported once and not called again in this run;
training continues. A listener may change the values of parameters; other changes that it makes to the model do not
reach the workers that compute shards of a batch.

Both are implemented in the same way::

    from paddle_tfm import hookimpl

    @hookimpl
    def register_norms():
        return {"my_norm": "my_package.my_norm:MyNorm"}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROJECT = "paddle_tfm"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True)
class WrongOnPurpose:
    """Marks a component with a deliberate mistake, which exists to show the effect of that mistake.

    Recipes can name it as any other component; listings, completion and `paddle-tfm plugin check` show it on request
    only.

    Example::

        return {"no_scale": WrongOnPurpose("my_package.no_scale:NoScale")}
    """

    target: type | str


Components = dict[str, "type | str | WrongOnPurpose"]
ExportRules = dict["type | str", "Callable | str"]

# kind of component -> what it is, in the order in which `paddle-tfm ls components` shows them
_KINDS = {
    "attention": "Self- and cross-attention. Subclass `paddle_tfm.protocols.Attention`.",
    "norm": "Normalization of the vector of each token. Subclass `paddle_tfm.protocols.Norm`.",
    "placement": "Where norm, residual and dropout stand around a sublayer. Subclass `paddle_tfm.protocols.Placement`.",
    "position": "Positional encoding of tokens. Subclass `paddle_tfm.protocols.PositionalEncoding`.",
    "feed_forward": "The position-wise feed-forward sublayer. Subclass `paddle_tfm.protocols.FeedForward`.",
    "head": "From the decoder's output to probabilities over tokens. Subclass `paddle_tfm.protocols.Head`.",
    "initializer": "Initial values of weight matrices. Subclass `paddle_tfm.protocols.Initializer`.",
    "task": "Pairs of texts to learn, in the splits train, valid and test. Subclass `paddle_tfm.protocols.Task`.",
    "dataset": "A named corpus: the addresses of its files and their format. Subclass `paddle_tfm.protocols.Dataset`.",
    "tokenizer": "From text to pieces and back. Subclass `paddle_tfm.protocols.Tokenizer`.",
    "metric": "A score of predictions. Subclass `paddle_tfm.protocols.Metric`.",
    "search": "Decoding: beam search, greedy search, sampling. Subclass `paddle_tfm.protocols.Search`.",
    "schedule": "The learning rate as a function of the step. Subclass `paddle_tfm.protocols.Schedule`.",
    "optimizer": "The rule that updates parameters. Subclass `paddle_tfm.protocols.Optimizer`.",
    "executor": "Who trains the runs of a sweep, and where. Subclass `paddle_tfm.protocols.Executor`.",
    "section": "A part of the report of a comparison. Subclass `paddle_tfm.protocols.Section`.",
    "kernel": "A faster way to compute a class or an op. Subclass `paddle_tfm.protocols.Kernel`.",
}
# kind -> the hook that registers its components
KINDS = {kind: "register_searches" if kind == "search" else f"register_{kind}s" for kind in _KINDS}
EXPORT_RULES = "register_ctranslate2_rules"
LISTENER = "listener"  # what a plugin with `on_` hooks is: it registers nothing, and has its plugin's name


def _registers(hook: str, what: str) -> Callable[[], Components]:
    def register() -> Components:
        raise NotImplementedError

    register.__name__, register.__doc__ = hook, what
    return hookspec(register)


globals().update({hook: _registers(hook, what) for hook, what in zip(KINDS.values(), _KINDS.values())})


@hookspec
def register_ctranslate2_rules() -> ExportRules:
    """How CTranslate2 holds components: the class, or where it is, → a rule, or where it is.

    A rule is a function of a component; docs/export.md says what it returns for each kind. It holds for exactly that
    class: a subclass has its own formula and needs its own rule. What has none is not exported.

    Example::

        def register_ctranslate2_rules():
            return {"my_package.my_norm:MyNorm": "my_package.exports:my_norm"}
    """


@hookspec
def on_run_start(run) -> None:
    """A run starts, or resumes at `run.step` > 0. `run` has `.folder`, `.name`, `.recipe`, `.model`, `.step`.

    Example::

        def on_run_start(run):
            print("training", run.name, "in", run.folder)
    """


@hookspec
def on_step_end(run, step: int, metrics: dict[str, float]) -> None:
    """An optimizer step ended. `metrics`: loss, learning_rate, gradient_norm, tokens, tokens_per_second, seconds_left.

    Example::

        def on_step_end(run, step, metrics):
            if metrics["gradient_norm"] > 100:
                print("step", step, "is rough")
    """


@hookspec
def on_evaluation_end(run, step: int, metrics: dict[str, float], samples: list) -> None:
    """The validation set was scored. `samples`: a few `Prediction`s (source, reference, hypothesis).

    Example::

        def on_evaluation_end(run, step, metrics, samples):
            print(step, metrics["exact_match"], samples[0].hypothesis)
    """


@hookspec
def on_checkpoint(run, step: int, path: Path) -> None:
    """A checkpoint was written to the folder `path`.

    Example::

        def on_checkpoint(run, step, path):
            shutil.copytree(path, backup / f"step-{step}")
    """


@hookspec
def on_run_end(run, results: dict) -> None:
    """A run ended; `results` is what `results.json` holds.

    Example::

        def on_run_end(run, results):
            print(run.name, results["test"]["exact_match"])
    """


@hookspec
def on_comparison_end(comparison) -> None:
    """All runs of a recipe ended and were compared. `comparison` has `.folder`, `.rows`, `.runs`.

    Example::

        def on_comparison_end(comparison):
            print(comparison.rows[0].variant, "came first")
    """
