"""How large a model is: the parameters that are trained, those that every token is multiplied with, and what training
takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddle_tfm.protocols.marks import maps

if TYPE_CHECKING:
    from paddle import Tensor

    from paddle_tfm.model.transformer import Transformer

FLOPS = 6  # of training, for each parameter in a matrix and each token: 2 forward, 4 backward


def trained_parameters(model: Transformer) -> list[Tensor]:
    """The parameters that a training changes, shared ones once."""
    return [parameter for parameter in model.parameters() if not parameter.stop_gradient]


def num_parameters(model: Transformer) -> int:
    """How many numbers a training changes, shared ones counted once."""
    return sum(int(parameter.size) for parameter in trained_parameters(model))


def matrix_parameters(model: Transformer) -> int:
    """N: the parameters in the matrices of encoder and decoder. Embeddings, tables of positions, the head, biases and
    gains are not in it, so that no vocabulary changes it; of a mixture, every expert is, though a token visits a few.
    It is N without embeddings of Kaplan et al. 2020, arXiv:2001.08361."""
    stacks = model.stacks().values()
    return sum(int(each.size) for stack in stacks for each in stack.parameters() if maps(each) is not None)


def training_flops(matrices: float, tokens: float) -> float:
    """C ≈ 6 · N · D, the floating-point operations of training `matrices` parameters (N) on `tokens` tokens (D): two
    for each parameter forward and four backward (arXiv:2001.08361, section 2.1). What attention does between tokens is
    not in it."""
    return FLOPS * matrices * tokens
