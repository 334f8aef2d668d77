"""How near an installed component is to ours, with which of its options, pairs of parameters and order of channels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import paddle
from paddle import nn

from paddle_tfm.components import Entry
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.registry import Registry
from paddle_tfm.testing.other_options import other_values
from paddle_tfm.testing.reference.case import Case
from paddle_tfm.testing.reference.installed import Installed, pairings

EXPLAINED = 0.2  # how much nearer it must be for an order of channels or an option of its own
ROUGH = 1e-3  # of the largest number: angles in float32 far out, a GELU by tanh
SAME = 1e-6  # of the largest number


@dataclass(frozen=True)
class Likeness:
    """How far a component is what ours is: `gap` 0 where they agree, `same` the share of numbers that do, `cosine` that
    between the two."""

    gap: float
    same: float
    cosine: float


def likeness(
    formula: Installed,
    cases: Sequence[Case],
    options: Mapping[str, object],
    plain: Sequence[np.ndarray],
    ours: Sequence[np.ndarray],
) -> Likeness:
    """Raises RecipeError or another error where it cannot be computed."""
    seen = []
    for case, without, y in zip(cases, plain, ours):
        other = formula(case, options)({**case.inputs, "w": case.parameters()})
        if other.shape != y.shape or not np.isfinite(other).all():
            return Likeness(math.inf, 0.0, 0.0)
        real = case.counted(y.shape)
        a, b = (y - without)[real], (other - without)[real]
        off = np.abs(a - b)
        acts = np.abs(b) > SAME * max(1e-12, np.abs(b).max())  # elsewhere it does nothing
        gap = float(off.max() / max(1e-12, np.abs(y[real]).max()))
        same = float((off[acts] <= SAME * np.abs(y[real]).max()).mean()) if acts.any() else 0.0
        cosine = float(a @ b / max(1e-30, np.linalg.norm(a) * np.linalg.norm(b)))
        seen.append((gap, same, cosine if y.size > 1 else 0.0))
    means = np.mean(seen, axis=0)
    return Likeness(max(gap for gap, *_rest in seen), float(means[1]), float(means[2]))


def nearest_of(
    registry: Registry,
    entry: Entry,
    cases: Sequence[Case],
    settings: Mapping[str, object],
    usual: bool = False,
    crossed: bool = False,
) -> tuple[Likeness, Installed] | None:
    """A component with the options, the pairs of parameters and the order of channels with which it is nearest; None
    where none of them can be computed with our parameters.

    Args:
        cases: some of ours. settings: the options of ours. usual: its own options stay as they are, where it
            can be compared so. crossed: parameters may be paired against their names.
    """
    ours = [case.ours({name: paddle.to_tensor(value) for name, value in case.inputs.items()}).numpy() for case in cases]
    plain = [_plain(case, y) for case, y in zip(cases, ours)]
    tried: list[tuple[Likeness, Installed]] = []
    for options in [{}, *_other_options(registry, entry, cases[0].layer)]:
        if tried and usual:
            break
        for formula in _paired(Installed(registry, entry, options), cases[0], settings):
            if formula.crossed and not crossed:
                continue
            try:
                tried.append((likeness(formula, cases, settings, plain, ours), formula))
            except Exception:  # it does not take these sizes, or this input
                continue
            if tried[-1][0].gap <= SAME:
                return tried[-1]
    return max(tried, key=_rank, default=None)


def _rank(tried: tuple[Likeness, Installed]) -> tuple:
    """What is nearest; of those about as near the one that needs no explanation. Names that are crossed, and sines in
    another order, are none unless with them it agrees."""
    likeness, formula = tried
    explained = formula.halves + bool(formula.options)
    unlikely = formula.crossed or (formula.halves and likeness.gap > ROUGH and "rotate" not in formula.hooks)
    return not unlikely, round(likeness.same + likeness.cosine - EXPLAINED * explained, 2)


def _paired(formula: Installed, case: Case, settings: Mapping[str, object]) -> Iterator[Installed]:
    try:
        component = formula.built(case, settings)
    except (RecipeError, UserError):
        return
    every = pairings(case.layer, component) if case.layer is not None else iter([({}, "")])
    hooks = component.uses() if isinstance(component, PositionalEncoding) else frozenset()
    for (pairs, crossed), halves in itertools.product(
        every, (False, True) if hooks & {"rotate", "embed"} else (False,)
    ):
        yield replace(formula, pairs=pairs, crossed=crossed, halves=halves, hooks=hooks)


def _plain(case: Case, y: np.ndarray) -> np.ndarray:
    """What comes out without any encoding; of other kinds nothing."""
    if isinstance(case.component, PositionalEncoding):
        tensors = {name: paddle.to_tensor(value) for name, value in case.inputs.items()}
        return np.broadcast_to(case.call(PositionalEncoding(), tensors).numpy(), y.shape)
    return np.zeros_like(y)


def _other_options(registry: Registry, entry: Entry, layer: nn.Layer | None) -> Iterator[dict[str, object]]:
    """One option each: other choices, and numbers that our layer keeps, such as its ε."""
    kept = [value for part in layer.sublayers(include_self=True) for value in vars(part).values()] if layer else []
    for name, option in registry.options(entry.kind, entry.name).items():
        values: list[object]
        if isinstance(option.default, (int, float)) and not isinstance(option.default, bool):
            values = [value for value in kept if type(value) is type(option.default) and value != option.default]
        else:
            values = other_values(option)
        for value in dict.fromkeys(values):
            yield {name: value}
