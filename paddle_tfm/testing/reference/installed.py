"""An installed component as a reference. `tests/references` hold those that ship to their papers, in NumPy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import paddle
from paddle import nn

from paddle_tfm.component_source import papers
from paddle_tfm.components import Entry
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.recipe.model_plan import NORMS_INSIDE
from paddle_tfm.registry import Registry
from paddle_tfm.testing.other_options import other_values
from paddle_tfm.testing.reference.case import Case, parameters_of
from paddle_tfm.testing.reference.file import Function

MOST_PAIRINGS = 120
EXPLAINED = 0.2  # how much nearer it must be for an order of channels or an option of its own
ROUGH = 1e-3  # of the largest number: angles in float32 far out, a GELU by tanh
SAME = 1e-6  # of the largest number


@dataclass(frozen=True)
class Installed:
    """A component with these options. `pairs`: its parameter → the one of ours with its value. `crossed`: those
    that are paired against their names. `halves`: channels (i, i + D / 2) of ours are neighbours in it."""

    registry: Registry
    entry: Entry
    options: Mapping[str, object]
    pairs: Mapping[str, str] = field(default_factory=dict)
    crossed: str = ""
    halves: bool = False
    hooks: frozenset[str] = frozenset()  # of an encoding

    def __str__(self) -> str:
        numbers = papers(self.entry.load().__doc__ or "")
        said = [f"arXiv:{numbers[0]}"] if numbers else []
        said += [
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.options.items()
        ]
        said += [self.crossed] if self.crossed else []
        said += ["channels i and i + D/2 in the place of neighbours"] if self.halves else []
        return f"`{self.entry.name}`" + (f" ({', '.join(said)})" if said else "")

    def parameters(self) -> frozenset[str]:
        """What it asks for, as a function in NumPy does: it has all cases, and is varied with its options."""
        return frozenset({"training", "at", *self.registry.options(self.entry.kind, self.entry.name)})

    def built(self, case: Case, options: Mapping[str, object]) -> nn.Layer:
        """Raises RecipeError where it refuses."""
        known = self.registry.options(self.entry.kind, self.entry.name)
        own = {**{name: value for name, value in options.items() if name in known}, **self.options}
        givens = {"dropout": 0.0, **dict.fromkeys(NORMS_INSIDE), **case.size}
        return self.registry.build(self.entry.kind, {"name": self.entry.name, **own}, **givens)

    def __call__(self, case: Case, options: Mapping[str, object]) -> Function:
        component = self.built(case, options)
        named = {**parameters_of(component), **dict(component.named_buffers())} if case.layer is not None else {}
        if case.layer is not None:
            component.eval()

        def call(inputs: dict) -> np.ndarray:
            for name, tensor in named.items():
                if (ours := self.pairs.get(name, name)) in inputs["w"]:
                    value = inputs["w"][ours]
                    if list(value.shape) == tensor.shape:
                        tensor.set_value(value.astype(str(tensor.dtype).removeprefix("paddle.")))
            tensors = {
                name: paddle.to_tensor(_apart(value) if self.halves else value)
                for name, value in inputs.items()
                if name in case.inputs
            }
            with paddle.no_grad():
                out = case.call(component, tensors).numpy()
            return _together(out) if self.halves and tensors else out

        return call


def _apart(x: np.ndarray) -> np.ndarray:
    """Channels (i, i + D / 2) as neighbours."""
    return np.stack(np.split(x, 2, -1), -1).reshape(x.shape) if x.shape[-1] % 2 == 0 else x


def _together(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x[..., 0::2], x[..., 1::2]], -1) if x.shape[-1] % 2 == 0 else x


def pairings(ours: nn.Layer, theirs: nn.Layer) -> Iterator[tuple[dict[str, str], str]]:
    """All ways to pair the parameters of two layers, theirs → ours: layers of one shape with each other; and where
    their names say otherwise, who stands for whom. None where the shapes are not the same."""
    mine, other = _owners(parameters_of(ours)), _owners(parameters_of(theirs))
    groups = []
    for shape in dict.fromkeys([*mine.values(), *other.values()]):
        from_, to = ([name for name, its in owners.items() if its == shape] for owners in (other, mine))
        if len(from_) != len(to):
            return
        orders = [dict(zip(from_, order)) for order in itertools.permutations(to)]
        groups.append(orders)
    every = [dict(itertools.chain(*(order.items() for order in chosen))) for chosen in itertools.product(*groups)]
    alike = [sum(_alike(*pair) for pair in owners.items()) for owners in every]
    for owners, score in sorted(zip(every, alike), key=lambda each: -each[1])[:MOST_PAIRINGS]:
        against = [
            f"`{to}` as its `{name}`"
            for name, to in owners.items()
            if not _alike(name, to) and any(_alike(name, each) for each in mine)
        ]
        pairs = {name: _leaf(owners[_owner(name)], name) for name in parameters_of(theirs)}
        yield pairs, ", ".join(against) if score < max(alike) else ""


def _owner(name: str) -> str:
    """A layer of its parameters; of one that stands alone its own name."""
    return name.rpartition(".")[0] or name


def _leaf(owner: str, theirs: str) -> str:
    return f"{owner}.{theirs.rpartition('.')[2]}" if "." in theirs else owner


def _owners(parameters: Mapping[str, paddle.Tensor]) -> dict[str, tuple]:
    """Layer → the leaves and shapes of its parameters."""
    owners: dict[str, tuple] = {}
    for name, parameter in parameters.items():
        leaf = name.rpartition(".")[2] if "." in name else ""
        owners[_owner(name)] = (*owners.get(_owner(name), ()), (leaf, *parameter.shape))
    return owners


def _alike(theirs: str, ours: str) -> bool:
    theirs, ours = theirs.rpartition(".")[2].lower(), ours.rpartition(".")[2].lower()
    return theirs in ours or ours in theirs


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
