"""oneDNN by its C interface: products and roundings against NumPy in float64, in forks, and where it is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import paddle
import pytest

from paddle_tfm import processes
from paddle_tfm.kernels.cpu import library as onednn
from paddle_tfm.kernels.cpu import primitives, row_kernels
from paddle_tfm.kernels.cpu.gemm import gemm, kernels_of_shapes_are_right, rounded
from paddle_tfm.kernels.cpu.primitives import Failed, describe, engine

needs_onednn = pytest.mark.skipif(bool(onednn.why_not()), reason=str(onednn.why_not()))
needs_bfloat16 = pytest.mark.skipif(bool(onednn.why_not("bfloat16")), reason=str(onednn.why_not("bfloat16")))
SHAPES = [(1, 256, 64), (150, 3000, 40)]  # M, K, N


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def widened(x):
    """bfloat16 (uint16) as float32."""
    return (x.astype(np.uint32) << 16).view(np.float32)


def test_the_library_of_the_wheel_is_there_on_the_platform_that_we_ship_for():
    """Without it everything works by Paddle's products; but its loss should be noticed here, not by a slow run."""
    assert onednn.why_not() is None
    assert onednn.library().version[:2] >= (3, 6)


@pytest.fixture(params=[False, True], ids=["no amx", "amx"])
def kernels_of_amx(request, monkeypatch):
    """Both ways to multiply bfloat16, of which the processor would take one; they work wherever bfloat16 does."""
    monkeypatch.setattr(onednn.library(), "has_amx", request.param)
    assert kernels_of_shapes_are_right(), "the faster kernels are not used with this version of oneDNN"


@needs_bfloat16
@pytest.mark.usefixtures("kernels_of_amx")
@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_a_product_of_bfloat16_sums_in_float32(m, k, n, transpose_a, transpose_b):
    """The factors are rounded and nothing else is: against the product in float64 of the rounded factors."""
    a, b, shift, scale = rounded(numbers(m, k)), rounded(numbers(k, n, seed=1)), numbers(n, seed=2), 0.25
    exact, atol = scale * widened(a).astype(np.float64) @ widened(b).astype(np.float64), 2e-6 * np.sqrt(k) * 4
    stored = (np.ascontiguousarray(a.T) if transpose_a else a), (np.ascontiguousarray(b.T) if transpose_b else b)
    out = np.full((m, n), np.nan, np.float32)
    np.testing.assert_allclose(gemm(*stored, out, transpose_a, transpose_b, scale=scale), exact, atol=atol)
    gemm(*stored, out, transpose_a, transpose_b, scale=scale, add=True)
    np.testing.assert_allclose(out, 2 * exact, atol=2 * atol)
    gemm(*stored, out, transpose_a, transpose_b, scale=scale, bias=shift)
    np.testing.assert_allclose(out, exact + scale * shift, atol=atol)


@needs_bfloat16
@pytest.mark.usefixtures("kernels_of_amx")
@pytest.mark.parametrize("seed", range(12))
def test_a_product_of_bfloat16_is_right_whatever_its_shape(seed):
    """oneDNN has a way of its own for each range of sizes. Some are wrong: kernels of 3.6.2 for any number of rows, where
    a sum is long and the last rows are few."""
    rng = np.random.default_rng(seed)
    m, k, n = (int(rng.choice([rng.integers(1, 40), rng.integers(40, 600), most])) for most in (700, 3000, 1024))
    a, b = rounded(numbers(m, k, seed=seed)), rounded(numbers(n, k, seed=seed + 1))
    exact = widened(a).astype(np.float64) @ widened(b).astype(np.float64).T
    out = gemm(a, b, np.empty((m, n), np.float32), transpose_b=True)
    np.testing.assert_allclose(out, exact, atol=2e-6 * np.sqrt(k) * 4)
    out = gemm(a, np.ascontiguousarray(b.T), out, bias=np.ones(n, np.float32))
    np.testing.assert_allclose(out, exact + 1, atol=2e-6 * np.sqrt(k) * 4)
    out = gemm(a, np.ascontiguousarray(b.T), out, add=True, scale=0.5)
    np.testing.assert_allclose(out, 1.5 * exact + 1, atol=4e-6 * np.sqrt(k) * 4)


@needs_bfloat16
@pytest.mark.usefixtures("kernels_of_amx")
@pytest.mark.parametrize("m", [9, 128, 300])
def test_a_product_of_bfloat16_reads_and_writes_columns_of_wider_matrices(m):
    a, b, out = rounded(numbers(m, 20)), rounded(numbers(8, 30, seed=1)), np.zeros((m, 40), np.float32)
    exact = widened(a[:, 3:10]).astype(np.float64) @ widened(b[:7, 4:9]).astype(np.float64)
    gemm(a[:, 3:10], b[:7, 4:9], out[:, 6:11], bias=np.ones(5, np.float32))
    np.testing.assert_allclose(out[:, 6:11], exact + 1, atol=1e-5)
    gemm(a[: m // 2, 3:10], b[:7, 4:9], out[: m // 2, 6:11], add=True)
    np.testing.assert_allclose(out[: m // 2, 6:11], 2 * exact[: m // 2] + 1, atol=1e-5)
    out[:, 6:11] = 0
    assert not out.any()  # the columns beside it


@needs_onednn
@pytest.mark.parametrize("size", [0, 1, 7, 1000, 2**20 + 2**19 + 3])
def test_numbers_are_rounded_to_the_nearest_and_ties_to_even(size):
    """Against Paddle's cast, and for ties against the definition."""
    x = numbers(size)
    expected = paddle.to_tensor(x).astype("bfloat16").astype("float32").numpy()
    np.testing.assert_array_equal(widened(rounded(x)), expected)
    ties = np.array([1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, np.inf, -np.inf, 0.0], np.float32)
    np.testing.assert_array_equal(
        widened(rounded(ties)), np.array([1, 1 + 2**-6, -1, np.inf, -np.inf, 0.0], np.float32)
    )


@needs_onednn
def test_no_numbers_are_an_empty_product_or_a_sum_of_nothing():
    assert gemm(numbers(0, 3), numbers(3, 4), np.empty((0, 4), np.float32)).shape == (0, 4)
    out = np.ones((2, 4), np.float32)
    assert (gemm(numbers(2, 0), numbers(0, 4), out, add=True) == 1).all()
    assert (gemm(numbers(2, 0), numbers(0, 4), out) == 0).all()
    np.testing.assert_array_equal(gemm(numbers(2, 0), numbers(0, 4), out, bias=numbers(4)), [numbers(4)] * 2)


@needs_onednn
@pytest.mark.parametrize(
    ("a", "b", "out"),
    [
        (numbers(2, 3), numbers(4, 5), np.empty((2, 5), np.float32)),
        (numbers(3, 2).T, numbers(3, 5), np.empty((2, 5), np.float32)),
        (numbers(2, 3).astype(np.float64), numbers(3, 5).astype(np.float64), np.empty((2, 5))),
        (rounded(numbers(2, 3)), numbers(3, 5), np.empty((2, 5), np.float32)),
    ],
)
def test_what_does_not_fit_is_refused_before_memory_is_touched(a, b, out):
    with pytest.raises(ValueError, match="needs dense matrices"):
        gemm(a, b, out)


@needs_onednn
@pytest.mark.parametrize("bias", [numbers(4), numbers(10)[::2]])
def test_a_bias_that_does_not_fit_is_refused(bias):
    with pytest.raises(ValueError, match="with bias"):
        gemm(numbers(2, 3), numbers(3, 5), np.empty((2, 5), np.float32), bias=bias)


@needs_onednn
def test_the_oldest_primitives_make_room(monkeypatch):
    monkeypatch.setattr(primitives, "MAX_PRIMITIVES", 4)
    monkeypatch.setattr(primitives, "_OF_THREAD", primitives._Primitives())
    for size in (1, 2, 4, 8, 16, 32, 64):
        np.testing.assert_array_equal(widened(rounded(np.ones(size, np.float32))), np.ones(size))
    assert [key[1] for key, _ in primitives._OF_THREAD.primitives] == [8, 16, 32, 64]


@needs_onednn
def test_what_onednn_cannot_make_is_an_error_with_its_status():
    kind = describe((2, 2))
    with pytest.raises(Failed, match="dnnl_matmul_primitive_desc_create of oneDNN returned status"):
        primitives.create("dnnl_matmul_primitive_desc_create", engine(), kind, describe((3, 3)), None, kind, None)


@needs_onednn
@pytest.mark.skipif(not processes.can_fork(), reason="no fork here")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_fork_computes_what_its_parent_does_with_any_number_of_threads(threads):
    """A run forks after it has computed: what oneDNN and its threads hold must survive that."""
    a, b = numbers(300, 200), numbers(200, 100, seed=1)

    def work(_):
        return gemm(a, b, np.empty((300, 100), np.float32)), rounded(a)

    processes.set_threads(2)
    try:
        for _ in range(2):  # before and after a first fork
            here = work(None)
            worker = processes.Worker(work, threads)
            try:
                worker.submit(None)
                there = worker.result()
            finally:
                worker.close()
            np.testing.assert_allclose(there[0], here[0], atol=1e-4)
            np.testing.assert_array_equal(there[1], here[1])
    finally:
        processes.set_threads(1)


@pytest.mark.parametrize("number", [0, 1, 15, 16, 17, 255, 256, 4095, 4096, 70_001])
def test_pieces_cover_all_rows_once_and_have_few_sizes(number):
    parts = row_kernels.pieces(number)
    assert [row for first, size in parts for row in (first, first + size)][1:-1:2] == [first for first, _ in parts[1:]]
    assert sum(size for _, size in parts) == number and len(parts) <= 5
    for _, size in parts:
        assert f"{size:x}".rstrip("0") in set("123456789abcdef")


# ------------------------------------------------------------------------------------------------------ where it is not


def test_a_library_that_is_not_there_is_said_so():
    with pytest.raises(onednn.Missing, match=r"libdnnl\.so\.3 of Paddle cannot be used"):
        onednn.Library(Path("/nowhere/libdnnl.so.3"))


def test_a_library_that_is_not_onednn_is_refused(tmp_path):
    """Paddle may ship another file under that name one day: here one without its functions, and one that is text."""
    text = tmp_path / "libdnnl.so.3"
    text.write_bytes(b"no library")
    for path in (text, Path(paddle.sysconfig.get_lib()) / "libquadmath.so.0"):
        with pytest.raises(onednn.Missing, match=f"{path.name} of Paddle cannot be used"):
            onednn.Library(path)


@needs_onednn
@pytest.mark.parametrize("supported", [(3, 99), (4, 0)])
def test_another_version_is_refused(monkeypatch, supported):
    """An older one lacks functions, one of another major version may have other numbers for the same names."""
    monkeypatch.setattr(onednn, "SUPPORTED", supported)
    with pytest.raises(onednn.Missing, match=rf"must be {supported[0]}\.{supported[1]} or later .* but is 3\."):
        onednn.Library(Path(paddle.sysconfig.get_lib()) / "libdnnl.so.3")


@pytest.mark.reliability
@needs_onednn
def test_what_a_processor_has_is_asked_of_onednn():
    """A variable of oneDNN takes instructions away, in a process of its own."""
    code = (
        "from paddle_tfm import runtime; runtime.load_paddle()\n"
        "from paddle_tfm.kernels.cpu.products import why_not\n"
        "print(why_not('float32'), '|', why_not('bfloat16'))"
    )
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"}
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == (
        "this processor has no AVX-512, without which they were not measured | "
        "this processor has no instructions for bfloat16 (avx512_bf16)"
    )
