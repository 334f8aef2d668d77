"""An installed component as a reference. `tests/references` hold those that ship to their papers, in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import paddle
from paddle import nn

from paddle_tfm.component_source import papers
from paddle_tfm.components import Entry
from paddle_tfm.recipe.model_plan import NORMS_INSIDE
from paddle_tfm.registry import Registry
from paddle_tfm.testing.reference.case import Case, parameters_of
from paddle_tfm.testing.reference.file import Function

MOST_PAIRINGS = 120


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
        named = {}
        if case.layer is not None:
            component.eval()
            named = component.state_dict()  # buffers that are not saved are constants of the formula

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
