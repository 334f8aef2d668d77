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

# kind of component -> the hook that registers it, in the order in which `paddle-tfm ls components` shows them
KINDS: dict[str, str] = {
    "attention": "register_attentions",
    "norm": "register_norms",
    "placement": "register_placements",
    "position": "register_positions",
    "feed_forward": "register_feed_forwards",
    "head": "register_heads",
    "initializer": "register_initializers",
    "task": "register_tasks",
    "dataset": "register_datasets",
    "tokenizer": "register_tokenizers",
    "metric": "register_metrics",
    "search": "register_searches",
    "schedule": "register_schedules",
    "optimizer": "register_optimizers",
    "executor": "register_executors",
    "section": "register_sections",
    "kernel": "register_kernels",
}
EXPORT_RULES = "register_ctranslate2_rules"
LISTENER = "listener"  # what a plugin with `on_` hooks is: it registers nothing, and has its plugin's name


@hookspec
def register_attentions() -> Components:
    """Self- and cross-attention. Subclass `paddle_tfm.protocols.Attention`."""


@hookspec
def register_norms() -> Components:
    """Normalization of the vector of each token. Subclass `paddle_tfm.protocols.Norm`."""


@hookspec
def register_placements() -> Components:
    """Where norm, residual and dropout stand around a sublayer. Subclass `paddle_tfm.protocols.Placement`."""


@hookspec
def register_positions() -> Components:
    """Positional encoding of tokens. Subclass `paddle_tfm.protocols.PositionalEncoding`."""


@hookspec
def register_feed_forwards() -> Components:
    """The position-wise feed-forward sublayer. Subclass `paddle_tfm.protocols.FeedForward`."""


@hookspec
def register_heads() -> Components:
    """From the decoder's output to probabilities over tokens. Subclass `paddle_tfm.protocols.Head`."""


@hookspec
def register_initializers() -> Components:
    """Initial values of weight matrices. Subclass `paddle_tfm.protocols.Initializer`."""


@hookspec
def register_tasks() -> Components:
    """Pairs of texts to learn, in the splits train, valid and test. Subclass `paddle_tfm.protocols.Task`."""


@hookspec
def register_datasets() -> Components:
    """A named corpus: the addresses of its files and their format. Subclass `paddle_tfm.protocols.Dataset`.

    A recipe uses it by ``task: {name: parallel, dataset: my-corpus}``; `paddle-tfm ls data` lists it.
    """


@hookspec
def register_tokenizers() -> Components:
    """From text to pieces and back. Subclass `paddle_tfm.protocols.Tokenizer`."""


@hookspec
def register_metrics() -> Components:
    """A score of predictions. Subclass `paddle_tfm.protocols.Metric`."""


@hookspec
def register_searches() -> Components:
    """Decoding: beam search, greedy search, sampling. Subclass `paddle_tfm.protocols.Search`."""


@hookspec
def register_schedules() -> Components:
    """The learning rate as a function of the step. Subclass `paddle_tfm.protocols.Schedule`."""


@hookspec
def register_optimizers() -> Components:
    """The rule that updates parameters. Subclass `paddle_tfm.protocols.Optimizer`."""


@hookspec
def register_executors() -> Components:
    """Who trains the runs of a sweep, and where. Subclass `paddle_tfm.protocols.Executor`.

    No recipe names it: ``paddle-tfm run RECIPE --executor local`` does.
    """


@hookspec
def register_sections() -> Components:
    """A part of the report of a comparison. Subclass `paddle_tfm.protocols.Section`.

    No recipe names it: the report has every section that applies to its runs.
    """


@hookspec
def register_kernels() -> Components:
    """A faster way to compute a class or an op. Subclass `paddle_tfm.protocols.Kernel`.

    No recipe names it: training and search use every kernel that fits, unless ``train.kernels: false``.
    """


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
