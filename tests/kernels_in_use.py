"""Blocks in which the installed kernels compute, as in the engine's steps and searches."""

from __future__ import annotations

import functools

from paddle_tfm import create_registry
from paddle_tfm.kernels import Mode, using


@functools.cache
def kernels():
    """Class or op → kernel."""
    return {of: kernel.build() for of, kernel in create_registry().kernels().items()}


def in_step(products="float32"):
    """As in a step of training; products None: Paddle's."""
    return using(Mode("step", products), kernels())


def in_search():
    """As in a search."""
    return using(Mode("search"), kernels())
