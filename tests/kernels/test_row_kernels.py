"""Kernels over rows and elements against NumPy in float64, for numbers of rows that fall into one piece and several."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from paddle_tfm import processes
from paddle_tfm.kernels.cpu import row_kernels
from paddle_tfm.kernels.cpu.library import why_not
from paddle_tfm.kernels.cpu.primitives import address

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
ROWS = [1, 7, 16, 33, 300]
every = pytest.mark.parametrize("rows", ROWS)
WIDTH = 24


def draw(rng, *shape):
    return rng.normal(0.5, 2.0, shape).astype("float32")


def run(kernel, rows, *operands):
    row_kernels.in_pieces(kernel, rows, [(address(array), stride) for array, stride in operands])


def softmax(x):
    e = np.exp(x.astype("float64") - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize("number", [0, 1, 15, 16, 17, 255, 256, 4095, 4096, 70_001])
def test_pieces_cover_all_rows_once_and_have_few_sizes(number):
    parts = row_kernels.pieces(number)
    assert [row for first, size in parts for row in (first, first + size)][1:-1:2] == [first for first, _ in parts[1:]]
    assert sum(size for _, size in parts) == number and len(parts) <= 5
    for _, size in parts:
        assert f"{size:x}".rstrip("0") in set("123456789abcdef")


@every
def test_softmax_and_its_gradient(rng, rows):
    x, g, row = draw(rng, rows, WIDTH), draw(rng, rows, WIDTH), 4 * WIDTH
    p, expected = x.copy(), softmax(x)
    run(lambda n: row_kernels.softmax(n, WIDTH), rows, (p, row), (p, row))
    np.testing.assert_allclose(p, expected, rtol=1e-5, atol=1e-7)
    of_x = g.copy()
    run(lambda n: row_kernels.softmax_gradient(n, WIDTH), rows, (p, row), (of_x, row), (of_x, row))
    np.testing.assert_allclose(of_x, expected * (g - (expected * g).sum(1, keepdims=True)), rtol=1e-4, atol=1e-6)


@every
@pytest.mark.parametrize("relu", [False, True])
def test_masked(rng, rows, relu):
    x, mask, y = draw(rng, rows), (rng.random(rows) < 0.7).astype("uint8"), np.empty(rows, "float32")
    run(lambda n: row_kernels.masked(n, 1.25, relu), rows, (x, 4), (mask, 1), (y, 4))
    np.testing.assert_allclose(y, (np.maximum(x, 0) if relu else x) * mask * 1.25, rtol=1e-6)


@every
def test_where_positive(rng, rows):
    y, g, x = np.maximum(draw(rng, rows), 0), draw(rng, rows), np.empty(rows, "float32")
    run(lambda n: row_kernels.where_positive(n, 1.25), rows, (y, 4), (np.zeros(1, "float32"), 0), (x, 4), (g, 4))
    np.testing.assert_allclose(x, (y > 0) * g * 1.25, rtol=1e-6)


def test_the_library_works_in_a_fork_of_a_process_that_has_used_it(rng):
    x = draw(rng, 64, WIDTH)

    def compute(_):
        p = x.copy()
        run(lambda n: row_kernels.softmax(n, WIDTH), 64, (p, 4 * WIDTH), (p, 4 * WIDTH))
        return p

    own, worker = compute(None), processes.Worker(compute, threads=2)
    try:
        worker.submit(None)
        np.testing.assert_array_equal(worker.result(), own)
    finally:
        worker.close()


@every
@pytest.mark.parametrize("flags", [row_kernels.USE_SCALE, row_kernels.USE_SCALE | row_kernels.USE_SHIFT])
def test_layer_norm_and_its_gradients(rng, rows, flags):
    x, g, row = draw(rng, rows, WIDTH), draw(rng, rows, WIDTH), 4 * WIDTH
    y, of_x, statistics = np.empty_like(x), np.empty_like(x), np.empty((2, rows), "float32")
    affine = [draw(rng, WIDTH) for _ in range(2 if flags & row_kernels.USE_SHIFT else 1)]
    whole = [(each, 0) for each in affine]
    rows_of = [(statistics[0], 4), (statistics[1], 4)]
    run(lambda n: row_kernels.layer_norm(n, WIDTH, 1e-5, flags), rows, (x, row), (y, row), *rows_of, *whole)
    exact = x.astype("float64")
    deviation = np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    normal = (exact - exact.mean(1, keepdims=True)) / deviation
    np.testing.assert_allclose(y, normal * affine[0] + (affine[1] if len(affine) == 2 else 0), rtol=1e-4, atol=1e-5)
    of_affine = [np.zeros((len(row_kernels.pieces(rows)), WIDTH), "float32") for _ in affine]
    for part, (first, size) in enumerate(row_kernels.pieces(rows)):
        kernel = row_kernels.layer_norm_gradient(size, WIDTH, 1e-5, flags)
        each_row = [array[first:] for array in (x, *statistics, g, of_x)]
        kernel(*map(address, [*each_row, *affine, *[each[part] for each in of_affine]]))
    up = g * affine[0].astype("float64")
    expected = (up - up.mean(1, keepdims=True) - normal * (up * normal).mean(1, keepdims=True)) / deviation
    np.testing.assert_allclose(of_x, expected, rtol=1e-3, atol=1e-5)
    for each, sums in zip(of_affine, [(g * normal).sum(0), g.sum(0)]):
        np.testing.assert_allclose(each.sum(0), sums, rtol=1e-4, atol=1e-4)


def test_they_are_for_float32():
    x, wide = paddle.ones([2, 3]), paddle.ones([2, 3], "float64")
    assert row_kernels.usable(x)
    assert not row_kernels.usable(wide) and not row_kernels.usable(x, wide)
