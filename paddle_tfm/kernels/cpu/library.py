"""The shared libraries: where they are, whether they may be used, and the signatures of their functions.

They are `paddle/libs/libdnnl.so.3` and, for products in float32, `libmklml_intel.so` beside it, which Paddle itself has
loaded: no second copy comes into the process, and they share Paddle's OpenMP, so that threads and forks behave as
Paddle's own products do. Names, types and numbers are those of the headers of oneDNN 3.6.2 (include/oneapi/dnnl), whose
C interface does not change within a major version, and of the C interface to the BLAS.

oneDNN's own product in float32, `dnnl_sgemm`, must not be called: with AVX-512 it computes with its stack pointer in a
workspace on the heap, over which the frame of a signal that arrives meanwhile is written
(docs/decisions/products-on-a-cpu.md).
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, c_char, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint, c_void_p
from pathlib import Path

import numpy as np
import paddle

from paddle_tfm.language import _

MKL = "libmklml_intel.so"
SUPPORTED = (3, 6)  # the lowest version; an other major version may have an other interface
AVX512 = 0x27  # dnnl_cpu_isa_avx512_core: flags of the processor
AVX512_BF16 = 0xE7  # dnnl_cpu_isa_avx512_core_bf16: the processor multiplies bfloat16 itself
AMX = 0xFEF  # dnnl_cpu_isa_avx512_core_amx: it multiplies tiles of them
SUCCESS = 0  # dnnl_success
# dnnl_cpu_isa_t → its name: which instructions the kernels use
INSTRUCTIONS = {
    0x0: "none", 0x1: "sse41", 0x3: "avx", 0x7: "avx2", 0xF: "avx2_vnni", 0x1F: "avx2_vnni_2", 0x27: "avx512_core",
    0x67: "avx512_core_vnni", 0xE7: "avx512_core_bf16", 0x1EF: "avx512_core_fp16", 0xFEF: "avx512_core_amx",
    0x1FEF: "avx512_core_amx_fp16",
}  # fmt: skip


class Missing(Exception):
    """oneDNN cannot be used here; the message says why."""


class _Version(ctypes.Structure):
    _fields_ = (
        ("major", c_int),
        ("minor", c_int),
        ("patch", c_int),
        ("hash", c_char_p),
        ("cpu_runtime", c_uint),
        ("gpu_runtime", c_uint),
    )


_OUT = POINTER(c_void_p)
_DIMS = POINTER(c_int64)
# function -> types of its arguments; all return a status, or a number, but the first a version
_ARGUMENTS: dict[str, list] = {
    "dnnl_version": [],
    "dnnl_get_effective_cpu_isa": [],
    "dnnl_gemm_bf16bf16f32": [
        c_char, c_char, c_int64, c_int64, c_int64,
        c_float, c_void_p, c_int64, c_void_p, c_int64, c_float, c_void_p, c_int64,
    ],
    "dnnl_engine_create": [_OUT, c_int, c_size_t],
    "dnnl_stream_create": [_OUT, c_void_p, c_uint],
    "dnnl_stream_wait": [c_void_p],
    "dnnl_memory_desc_create_with_strides": [_OUT, c_int, _DIMS, c_int, _DIMS],
    "dnnl_memory_create": [_OUT, c_void_p, c_void_p, c_void_p],
    "dnnl_memory_set_data_handle": [c_void_p, c_void_p],
    "dnnl_memory_destroy": [c_void_p],
    "dnnl_primitive_attr_create": [_OUT],
    "dnnl_primitive_attr_set_post_ops": [c_void_p, c_void_p],
    "dnnl_post_ops_create": [_OUT],
    "dnnl_post_ops_append_eltwise": [c_void_p, c_int, c_float, c_float],
    "dnnl_post_ops_append_binary": [c_void_p, c_int, c_void_p],
    "dnnl_post_ops_append_sum": [c_void_p, c_float, c_int32, c_int],
    "dnnl_post_ops_destroy": [c_void_p],
    "dnnl_primitive_attr_destroy": [c_void_p],
    "dnnl_binary_primitive_desc_create": [_OUT, c_void_p, c_int, c_void_p, c_void_p, c_void_p, c_void_p],
    "dnnl_softmax_forward_primitive_desc_create": [
        _OUT, c_void_p, c_int, c_int, c_void_p, c_void_p, c_int, c_void_p,
    ],
    "dnnl_softmax_backward_primitive_desc_create": [
        _OUT, c_void_p, c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p, c_void_p,
    ],
    "dnnl_layer_normalization_forward_primitive_desc_create": [
        _OUT, c_void_p, c_int, c_void_p, c_void_p, c_void_p, c_float, c_uint, c_void_p,
    ],
    "dnnl_layer_normalization_backward_primitive_desc_create": [
        _OUT, c_void_p, c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_float, c_uint, c_void_p, c_void_p,
    ],
    "dnnl_primitive_desc_destroy": [c_void_p],
    "dnnl_primitive_create": [_OUT, c_void_p],
    "dnnl_primitive_execute": [c_void_p, c_void_p, c_int, c_void_p],
    "dnnl_primitive_destroy": [c_void_p],
    "dnnl_reorder_primitive_desc_create": [_OUT, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p],
    "dnnl_matmul_primitive_desc_create": [_OUT, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p],
}  # fmt: skip
_SGEMM: list = [
    c_int, c_int, c_int, c_int, c_int, c_int,
    c_float, c_void_p, c_int, c_void_p, c_int, c_float, c_void_p, c_int,
]  # fmt: skip
ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112  # CBLAS_LAYOUT and CBLAS_TRANSPOSE of `cblas_sgemm`


class Library:
    """The functions of oneDNN, with their signatures, as attributes, and `cblas_sgemm` of the MKL beside it.

    Args:
        path: of oneDNN's shared library.

    Raises:
        Missing: it is not there, has another version, lacks a function, or multiplies wrongly.
    """

    def __init__(self, path: Path):
        try:
            self._handle = ctypes.CDLL(str(path))
            for name, arguments in _ARGUMENTS.items():
                function = getattr(self._handle, name)
                function.argtypes, function.restype = arguments, c_int
                setattr(self, name, function)
            self.dnnl_version.restype = POINTER(_Version)
        except (OSError, AttributeError, TypeError) as error:
            raise Missing(f"{path.name} of Paddle cannot be used: {error}") from None
        try:
            self.cblas_sgemm = ctypes.CDLL(str(path.with_name(MKL))).cblas_sgemm
            self.cblas_sgemm.argtypes, self.cblas_sgemm.restype = _SGEMM, None
        except (OSError, AttributeError) as error:
            raise Missing(f"{MKL} of Paddle cannot be used: {error}") from None
        version = self.dnnl_version().contents
        self.version: tuple[int, int, int] = (version.major, version.minor, version.patch)
        if self.version[:2] < SUPPORTED or self.version[0] != SUPPORTED[0]:
            raise Missing(f"oneDNN must be {SUPPORTED[0]}.{SUPPORTED[1]} or later of its major version, but is "
                          f"{'.'.join(map(str, self.version))}")  # fmt: skip
        isa = self.dnnl_get_effective_cpu_isa()
        self.instructions = INSTRUCTIONS.get(isa, f"isa {isa:#x}")
        self.has_avx512, self.has_bfloat16 = (isa & flags == flags for flags in (AVX512, AVX512_BF16))
        self.has_amx = isa & AMX == AMX
        self._require_exact_products()

    def __getattr__(self, name: str):
        raise AttributeError(f"oneDNN's {name} has no signature in {__name__}; add it there")

    def _require_exact_products(self) -> None:
        """Products of small whole numbers are exact in float32 and bfloat16, so that they must be right to the bit."""
        rng = np.random.default_rng(0)
        a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((19, 37), (37, 23)))
        expected = a.astype(np.float64) @ b.astype(np.float64)
        product = np.full((19, 23), np.nan, np.float32)
        data = a.ctypes.data, 37, b.ctypes.data, 23, 0.0, product.ctypes.data, 23
        self.cblas_sgemm(ROW_MAJOR, PLAIN, PLAIN, 19, 23, 37, 1.0, *data)
        if not np.array_equal(product, expected):
            raise Missing(f"cblas_sgemm of {MKL} gave a wrong product on this processor")
        if self.has_bfloat16:
            a, b = _upper_half(a), _upper_half(b)
            product.fill(np.nan)
            data = a.ctypes.data, 37, b.ctypes.data, 23, 0.0, product.ctypes.data, 23
            status = self.dnnl_gemm_bf16bf16f32(b"N", b"N", 19, 23, 37, 1.0, *data)
            if status != SUCCESS or not np.array_equal(product, expected):
                raise Missing(f"oneDNN gave a wrong product of bfloat16 on this processor (status {status})")


def _upper_half(x: np.ndarray) -> np.ndarray:
    """float32 numbers that bfloat16 holds exactly, as bfloat16 (the upper 16 bits)."""
    return (np.ascontiguousarray(x).view(np.uint32) >> 16).astype(np.uint16)


@functools.cache
def _loaded() -> Library | str:
    """The library, or why there is none."""
    try:
        return Library(Path(paddle.sysconfig.get_lib()) / "libdnnl.so.3")
    except Missing as error:
        return str(error)


def library() -> Library:
    """The library.

    Raises:
        Missing: there is none that works; ask `why_not` before.
    """
    loaded = _loaded()
    if isinstance(loaded, str):
        raise Missing(loaded)
    return loaded


def instructions() -> str:
    """The instructions that its kernels use on this processor, which decide the order of their sums; "none" where there
    is no library."""
    loaded = _loaded()
    return "none" if isinstance(loaded, str) else loaded.instructions


def why_not(kind: str = "float32") -> str | None:
    """None if numbers of `kind` (float32 | bfloat16) can be multiplied here, otherwise the reason."""
    loaded = _loaded()
    if isinstance(loaded, str):
        return loaded
    if kind == "bfloat16" and not loaded.has_bfloat16:
        return _("this processor has no instructions for bfloat16 (avx512_bf16)")
    return None
