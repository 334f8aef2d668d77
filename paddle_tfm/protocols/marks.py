"""What a component says of a parameter of its own: a mark is put on it where it is created."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paddle import Tensor


def keep_initial(parameter: Tensor) -> Tensor:
    """Mark a parameter whose initial value belongs to the method (a zero gate): the recipe's initializer leaves it."""
    parameter.keep_initial = True
    return parameter


def no_decay(parameter: Tensor) -> Tensor:
    """Mark a bias, a gain or a mixer of two or more dimensions, which weight decay would draw away from where it
    belongs: optimizers decay every other parameter of two or more dimensions."""
    parameter.no_decay = True
    return parameter


def is_decayed(parameter: Tensor) -> bool:
    """Whether an optimizer's weight decay acts on this parameter."""
    return parameter.ndim >= 2 and not getattr(parameter, "no_decay", False)


def maps_as(parameter: Tensor, role: str | None) -> Tensor:
    """Mark what a matrix [fan_in, fan_out] maps, in the words of muP's table (arXiv:2203.03466, table 3).

    Args:
        role: "output": from vectors as wide as the model to a number of things that no width changes (words, experts, a
            gate); "input": from such a number; "hidden": from wide to wide; None: it is no linear map, but a table of
            positions or a kernel. Unmarked: the matrix of a head's `output` is an output, an embedding and what has the
            mark `no_decay` is none, and every other parameter of two or more dimensions is hidden.
    """
    parameter.maps = role
    return parameter


def maps(parameter: Tensor) -> str | None:
    """What it maps, by its marks; what the engine knows of embeddings and heads is not in it."""
    unmarked = None if parameter.ndim < 2 or getattr(parameter, "no_decay", False) else "hidden"
    return getattr(parameter, "maps", unmarked)
