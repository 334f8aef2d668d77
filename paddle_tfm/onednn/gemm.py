"""Products of matrices, and float32 numbers rounded to bfloat16.

The kernels behind `gemm` pack blocks of both factors as they go and depend on no shape, so that nothing is made, kept
or invalidated: a weight may change between two calls. They are as fast as those for one shape (docs/performance.md).
"""

from __future__ import annotations

import numpy as np

from paddle_tfm.onednn.library import SUCCESS, library
from paddle_tfm.onednn.primitives import BF16, DST, F32, SRC, Failed, Primitive, address, describe, engine, kept

LARGEST_PIECE = 20  # an array is rounded in pieces of 2^20, 2^19, … 2^0 numbers, so that few kernels do for all sizes


def gemm(
    a: np.ndarray,
    b: np.ndarray,
    out: np.ndarray,
    transpose_a: bool = False,
    transpose_b: bool = False,
    add: bool = False,
) -> np.ndarray:
    """out = a b, or out += a b with `add`; a [M, K] ([K, M] with `transpose_a`), b [K, N] ([N, K] with `transpose_b`),
    out [M, N], which is returned. All are dense, row by row; a and b are float32, or both are bfloat16 (uint16, as
    `rounded` returns them); sums and `out` are float32.

    Raises:
        ValueError: a shape or dtype does not fit. Failed: oneDNN could not.
    """
    m, k = a.shape[::-1] if transpose_a else a.shape
    other_k, n = b.shape[::-1] if transpose_b else b.shape
    fits = k == other_k and out.shape == (m, n) and a.dtype == b.dtype and out.dtype == np.float32
    if not fits or not (a.flags.c_contiguous and b.flags.c_contiguous and out.flags.c_contiguous):
        raise ValueError(
            f"a product needs dense matrices [M, K], [K, N] and [M, N], but has {a.dtype} {a.shape}"
            f"{' transposed' * transpose_a}, {b.dtype} {b.shape}{' transposed' * transpose_b} and {out.dtype} "
            f"{out.shape}"
        )
    if not out.size:
        return out
    if not k:
        out[...] = out if add else 0.0
        return out
    kind = "bfloat16" if a.dtype == np.uint16 else "float32"
    multiply(kind, m, n, k, address(a), address(b), address(out), transpose_a, transpose_b, add)
    return out


def multiply(
    kind: str, m: int, n: int, k: int, a: int, b: int, out: int, transpose_a: bool, transpose_b: bool, add: bool = False
) -> None:
    """`gemm` of matrices of `kind` (float32 | bfloat16) at addresses, for callers who know that they are dense and of
    these sizes: nothing is checked.

    Raises:
        Failed: oneDNN could not.
    """
    function = library().dnnl_gemm_bf16bf16f32 if kind == "bfloat16" else library().dnnl_sgemm
    status = function(
        b"T" if transpose_a else b"N", b"T" if transpose_b else b"N", m, n, k,
        1.0, a, m if transpose_a else k, b, k if transpose_b else n, 1.0 if add else 0.0, out, n,
    )  # fmt: skip
    if status != SUCCESS:
        raise Failed(f"a product of oneDNN returned status {status}")


def rounded(x: np.ndarray) -> np.ndarray:
    """float32 x, dense, as bfloat16 (the nearest, ties to even) in an array of uint16 of its shape."""
    result, done = np.empty(x.shape, np.uint16), 0
    source, target = address(x), address(result)
    while done < x.size:
        exponent = min((x.size - done).bit_length() - 1, LARGEST_PIECE)
        _rounding(1 << exponent)(source + 4 * done, target + 2 * done)
        done += 1 << exponent
    return result


def _rounding(size: int) -> Primitive:
    def make() -> Primitive:
        full, half = describe((size,), F32), describe((size,), BF16)
        return Primitive(
            "dnnl_reorder_primitive_desc_create", full, engine(), half, engine(), None, arguments={SRC: full, DST: half}
        )

    return kept(("rounding", size), make)
