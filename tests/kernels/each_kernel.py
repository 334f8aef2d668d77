"""Every kernel that is called by address, over operands of random shapes: in a process of its own, which a fault may end.

python each_kernel.py COUNT      operands lie between pages that may not be touched
"""

from __future__ import annotations

import sys

import numpy as np

import paddle_tfm  # noqa: F401  (before Paddle)
from paddle_tfm import runtime

runtime.load_paddle()
from paddle_tfm.kernels.cpu import library, row_kernels  # noqa: E402
from paddle_tfm.kernels.cpu.gemm import gemm, rounded  # noqa: E402
from paddle_tfm.kernels.cpu.primitives import address  # noqa: E402
from paddle_tfm.testing.trials.child import Guarded  # noqa: E402

FLAGS = row_kernels.USE_SCALE | row_kernels.USE_SHIFT


def product(kind, transpose_a, transpose_b, with_bias, by_shape=False):
    def compute(rng, place):
        m, n, k = (int(rng.choice([rng.integers(1, 20), rng.integers(20, 400)])) for _ in range(3))
        m += 128 * by_shape
        a, b = ((k, m) if transpose_a else (m, k)), ((n, k) if transpose_b else (k, n))
        a, b = (rng.standard_normal(shape).astype("float32") for shape in (a, b))
        a, b = (place(each if kind == "float32" else rounded(each)) for each in (a, b))
        out, bias = place(np.zeros((m, n), "float32")), place(rng.standard_normal(n).astype("float32"))

        def once():
            library.library().has_amx = by_shape
            gemm(a, b, out, transpose_a, transpose_b, bias=bias if with_bias else None)

        return once

    return compute


def rows_and_width(rng):
    return int(rng.choice([1, 7, 16, 33, 300])), int(rng.integers(1, 600))


def softmax(rng, place):
    rows, width = rows_and_width(rng)
    x, y = place(rng.standard_normal((rows, width)).astype("float32")), place(np.zeros((rows, width), "float32"))
    return lambda: row_kernels.softmax(rows, width)(address(x), address(y))


def softmax_gradient(rng, place):
    rows, width = rows_and_width(rng)
    p, g, out = (place(rng.random((rows, width)).astype("float32")) for _ in range(3))
    return lambda: row_kernels.softmax_gradient(rows, width)(*map(address, (p, g, out)))


def layer_norm(rng, place, gradient=False):
    rows, width = rows_and_width(rng)
    x, y, g, of_x = (place(rng.standard_normal((rows, width)).astype("float32")) for _ in range(4))
    mean, variance = (place(rng.random(rows).astype("float32") + 0.5) for _ in range(2))
    scale, shift, of_scale, of_shift = (place(rng.standard_normal(width).astype("float32")) for _ in range(4))
    if gradient:
        operands = x, mean, variance, g, of_x, scale, shift, of_scale, of_shift
        kernel = row_kernels.layer_norm_gradient
        return lambda: kernel(rows, width, 1e-5, FLAGS)(*map(address, operands))
    operands = x, y, mean, variance, scale, shift
    return lambda: row_kernels.layer_norm(rows, width, 1e-5, FLAGS)(*map(address, operands))


def masked(rng, place):
    count = int(rng.integers(1, 40_000))
    x, y = place(rng.standard_normal(count).astype("float32")), place(np.zeros(count, "float32"))
    mask = place((rng.random(count) < 0.7).astype("uint8"))
    return lambda: row_kernels.masked(count, 1.25, True)(*map(address, (x, mask, y)))


def where_positive(rng, place):
    count = int(rng.integers(1, 40_000))
    y, out, g = (place(rng.standard_normal(count).astype("float32")) for _ in range(3))
    zero = place(np.zeros(1, "float32"))
    return lambda: row_kernels.where_positive(count, 1.25)(*map(address, (y, zero, out, g)))


def rounding(rng, place):
    x = place(rng.standard_normal(int(rng.integers(1, 40_000))).astype("float32"))
    return lambda: rounded(x)


KERNELS = {
    **{f"float32 {ta:d}{tb:d}{bias:d}": product("float32", ta, tb, bias) for ta in (0, 1) for tb in (0, 1) for bias in (0, 1)},
    "softmax": softmax,
    "softmax gradient": softmax_gradient,
    "layer norm": layer_norm,
    "layer norm gradient": lambda rng, place: layer_norm(rng, place, gradient=True),
    "masked": masked,
    "where positive": where_positive,
}  # fmt: skip
if not library.why_not("bfloat16"):
    KERNELS |= {f"bfloat16 {ta:d}{tb:d}": product("bfloat16", ta, tb, False) for ta in (0, 1) for tb in (0, 1)}
    KERNELS |= {"bfloat16 by shape": product("bfloat16", False, True, True, by_shape=True), "rounding": rounding}


if __name__ == "__main__":
    rng = np.random.default_rng(3)
    for name, make in KERNELS.items():
        print(name, flush=True)
        for place in (Guarded(at_end=True), Guarded(at_end=False)):
            for _ in range(int(sys.argv[1]) // 2):
                make(rng, place)()
