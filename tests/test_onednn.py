"""oneDNN's kernels against NumPy in float64, for numbers of rows that fall into one piece and into several."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import numpy as np
import pytest

from paddle_tfm import onednn, processes

ROWS = [1, 7, 16, 33, 300]
every = pytest.mark.parametrize("rows", ROWS)
WIDTH = 24
needed = pytest.mark.skipif(sys.platform != "linux", reason="Paddle's wheel has the library on Linux")
pytestmark = needed


@pytest.fixture(autouse=True)
def library():
    assert onednn.available(), "the tested Paddle ships it"


def draw(rng, *shape):
    return rng.normal(0.5, 2.0, shape).astype("float32")


def run(kernel, rows, *operands):
    onednn.in_pieces(kernel, rows, [(onednn.address(array), stride) for array, stride in operands])


def softmax(x):
    e = np.exp(x.astype("float64") - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize("number", [0, 1, 15, 16, 17, 255, 256, 4095, 4096, 70_001])
def test_pieces_cover_all_rows_once_and_have_few_sizes(number):
    parts = onednn.pieces(number)
    assert [row for first, size in parts for row in (first, first + size)][1:-1:2] == [first for first, _ in parts[1:]]
    assert sum(size for _, size in parts) == number and len(parts) <= 5
    for _, size in parts:
        assert f"{size:x}".rstrip("0") in set("123456789abcdef")


@every
def test_softmax_and_its_gradient(rng, rows):
    x, g, row = draw(rng, rows, WIDTH), draw(rng, rows, WIDTH), 4 * WIDTH
    p, expected = x.copy(), softmax(x)
    run(lambda n: onednn.softmax(n, WIDTH), rows, (p, row), (p, row))
    np.testing.assert_allclose(p, expected, rtol=1e-5, atol=1e-7)
    of_x = g.copy()
    run(lambda n: onednn.softmax_gradient(n, WIDTH), rows, (p, row), (of_x, row), (of_x, row))
    np.testing.assert_allclose(of_x, expected * (g - (expected * g).sum(1, keepdims=True)), rtol=1e-4, atol=1e-6)


@every
@pytest.mark.parametrize("relu", [False, True])
def test_masked(rng, rows, relu):
    x, mask, y = draw(rng, rows), (rng.random(rows) < 0.7).astype("uint8"), np.empty(rows, "float32")
    run(lambda n: onednn.masked(n, 1.25, relu), rows, (x, 4), (mask, 1), (y, 4))
    np.testing.assert_allclose(y, (np.maximum(x, 0) if relu else x) * mask * 1.25, rtol=1e-6)


@every
def test_where_positive(rng, rows):
    y, g, x = np.maximum(draw(rng, rows), 0), draw(rng, rows), np.empty(rows, "float32")
    run(lambda n: onednn.where_positive(n, 1.25), rows, (y, 4), (np.zeros(1, "float32"), 0), (x, 4), (g, 4))
    np.testing.assert_allclose(x, (y > 0) * g * 1.25, rtol=1e-6)


def test_the_library_works_in_a_fork_of_a_process_that_has_used_it(rng):
    x = draw(rng, 64, WIDTH)

    def compute(_):
        p = x.copy()
        run(lambda n: onednn.softmax(n, WIDTH), 64, (p, 4 * WIDTH), (p, 4 * WIDTH))
        return p

    own, worker = compute(None), processes.Worker(functools.partial(compute), threads=2)
    try:
        worker.submit(None)
        np.testing.assert_array_equal(worker.result(), own)
    finally:
        worker.close()


def test_a_variable_of_the_environment_switches_it_off():
    code = "from paddle_tfm.runtime import load_paddle\nload_paddle()\nfrom paddle_tfm import onednn\n"
    code += "print(onednn.available())"
    environment = {**os.environ, onednn.SWITCH: "0"}
    answer = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True)
    assert answer.stdout.split() == ["False"]
