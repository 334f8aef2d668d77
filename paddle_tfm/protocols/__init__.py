# ruff: noqa: F401
"""The contracts between kinds of components, a page a kind. A variant is a subclass of one of these classes, and
nothing else.

Each page holds all that its author needs: formula, shapes, givens, invariances, what is raised, an example; and
`Component` what is alike in all of them.

Legend of shapes: B batch · T target or own length · S source length · C d_model · H score heads · D head_dim (the
attention says what it is; not always C / H) · V vocabulary.

Invariants.
 1. `Attention.project` makes keys and values, `Attention.forward` attends to them. The key/value cache is the engine's:
    it calls `extend` and `select` on what `project` returned, and nothing else.
 2. Training is the incremental step with T tokens and an empty past: one code path.
 3. A sublayer is called exactly once a pass.
 4. An encoding is a pure function of positions, never of a tensor's length.
 5. State is an explicit value; a layer keeps none.
 6. No layer asks which variant it holds.
 7. Every random draw is keyed by (seed, purpose or parameter path, step): use `paddle_tfm.layers.Dropout`.
 8. A component that makes no sense at its site, or with its neighbour, raises `ValueError` in its constructor
    (`paddle_tfm.validators` has the usual checks).

A constructor takes flat keyword parameters. Those named like a *given* of its kind (`Component.givens`) are filled by
the engine; the others are options of the recipe, and so are the few givens in `Component.settable`. A constructor that
ends with ``**parent`` takes its superclass' parameters too (`Component.fixed_options`), and a misspelt option is still
refused.

Names are imported from here; a page is loaded when one of its names is first used, so that a metric or a tokenizer,
which needs no Paddle, imports none.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paddle_tfm.protocols.attention import Attention
    from paddle_tfm.protocols.component import Component
    from paddle_tfm.protocols.context import Cache, Geometry, KeyValue, LayerSite, Memory, TokenInfo
    from paddle_tfm.protocols.dataset import Dataset, RemoteFile
    from paddle_tfm.protocols.executor import Cell, Executor, Outcome, Supervisor
    from paddle_tfm.protocols.feed_forward import FeedForward
    from paddle_tfm.protocols.head import Head
    from paddle_tfm.protocols.initializer import Initializer, ParameterSite
    from paddle_tfm.protocols.kernel import Kernel
    from paddle_tfm.protocols.layer_component import LayerComponent
    from paddle_tfm.protocols.marks import is_decayed, keep_initial, maps, maps_as, no_decay
    from paddle_tfm.protocols.mask import MASKED_SCORE, Mask
    from paddle_tfm.protocols.metric import Likelihood, Metric, Prediction
    from paddle_tfm.protocols.norm import Norm
    from paddle_tfm.protocols.optimizer import Optimizer
    from paddle_tfm.protocols.placement import NormFactory, Placement, Profile, Sublayer
    from paddle_tfm.protocols.position import PositionalEncoding
    from paddle_tfm.protocols.refusal import Refusal
    from paddle_tfm.protocols.schedule import Schedule
    from paddle_tfm.protocols.search import Constraints, Decoding, Hypothesis, Search
    from paddle_tfm.protocols.section import Facts, Section
    from paddle_tfm.protocols.tap import Tap
    from paddle_tfm.protocols.task import SPLITS, Example, Excerpt, Task
    from paddle_tfm.protocols.tokenizer import Tokenizer

# page → the names that it defines. That of a kind has the kind's name, and its first is what components subclass.
_KINDS: dict[str, tuple[str, ...]] = {
    "attention": ("Attention",),
    "norm": ("Norm",),
    "placement": ("Placement", "NormFactory", "Profile", "Sublayer"),
    "position": ("PositionalEncoding",),
    "feed_forward": ("FeedForward",),
    "head": ("Head",),
    "initializer": ("Initializer", "ParameterSite"),
    "task": ("Task", "Example", "Excerpt", "SPLITS"),
    "dataset": ("Dataset", "RemoteFile"),
    "tokenizer": ("Tokenizer",),
    "metric": ("Metric", "Likelihood", "Prediction"),
    "search": ("Search", "Constraints", "Decoding", "Hypothesis"),
    "schedule": ("Schedule",),
    "optimizer": ("Optimizer",),
    "executor": ("Executor", "Cell", "Outcome", "Supervisor"),
    "section": ("Section", "Facts"),
    "kernel": ("Kernel",),
}
_SHARED: dict[str, tuple[str, ...]] = {
    "component": ("Component",),
    "context": ("Cache", "Geometry", "KeyValue", "LayerSite", "Memory", "TokenInfo"),
    "layer_component": ("LayerComponent",),
    "marks": ("is_decayed", "keep_initial", "maps", "maps_as", "no_decay"),
    "mask": ("MASKED_SCORE", "Mask"),
    "refusal": ("Refusal",),
    "tap": ("Tap",),
}
BASES = {kind: names[0] for kind, names in _KINDS.items()}
_PAGE_OF = {name: page for page, names in (_KINDS | _SHARED).items() for name in names}
__all__ = sorted([*_PAGE_OF, "BASES", "base_class"])


def __getattr__(name: str):
    if name in _PAGE_OF:
        return getattr(importlib.import_module(f"paddle_tfm.protocols.{_PAGE_OF[name]}"), name)
    raise AttributeError(f"module 'paddle_tfm.protocols' has no attribute '{name}'")


def base_class(kind: str) -> type:
    """The class that components of this kind subclass."""
    return __getattr__(BASES[kind])


def __dir__() -> list[str]:
    return sorted({*globals(), *_PAGE_OF})
