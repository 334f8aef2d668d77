"""Every kernel that is called by address, over operands of random shapes: in a process of its own, which a fault may end.

python each_kernel.py guard COUNT      operands lie between pages that may not be touched
python each_kernel.py stack SECONDS    where the stack pointer stands when a signal arrives
"""

from __future__ import annotations

import ctypes
import mmap
import signal
import struct
import sys
import time
from pathlib import Path

import numpy as np

import paddle_tfm  # noqa: F401  (before Paddle)
from paddle_tfm import runtime

runtime.load_paddle()
from paddle_tfm.kernels.cpu import library, row_kernels  # noqa: E402
from paddle_tfm.kernels.cpu.gemm import gemm, rounded  # noqa: E402
from paddle_tfm.kernels.cpu.primitives import address  # noqa: E402
from paddle_tfm.testing.trials.child import Guarded  # noqa: E402

FLAGS = row_kernels.USE_SCALE | row_kernels.USE_SHIFT
SA_RESTART, SA_SIGINFO, SA_ONSTACK = 0x10000000, 4, 0x08000000
libc = ctypes.CDLL(None, use_errno=True)


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


def guard(count):
    rng = np.random.default_rng(3)
    for name, make in KERNELS.items():
        print(name, flush=True)
        for place in (Guarded(at_end=True), Guarded(at_end=False)):
            for _ in range(count // 2):
                make(rng, place)()


def handle(number, where, flags):
    """Have the machine code at `where` called at signals, by the system and not by Python."""

    class Action(ctypes.Structure):
        _fields_ = [
            ("where", ctypes.c_void_p),
            ("mask", ctypes.c_uint64 * 16),
            ("flags", ctypes.c_int),
            ("restorer", ctypes.c_void_p),
        ]

    action = Action(where, (ctypes.c_uint64 * 16)(), flags, None)
    if libc.sigaction(number, ctypes.byref(action), None):
        raise OSError(ctypes.get_errno(), "sigaction")


def stack(seconds):
    """Each sample is the stack pointer of what a signal has interrupted; the handler has a stack of its own."""
    samples = (ctypes.c_uint64 * 65537)()  # their number, and the last 65,536
    code = b"".join(
        (
            b"\x48\x8b\x82\xa0\x00\x00\x00",  # mov rax, [rdx + 160]: the stack pointer in the third argument, a ucontext
            b"\x48\xb9" + struct.pack("<Q", ctypes.addressof(samples)),  # mov rcx, samples
            b"\x4c\x8b\x01\x49\x81\xe0\xff\xff\x00\x00",  # mov r8, [rcx]; and r8, 65535
            b"\x4a\x89\x44\xc1\x08\xf0\x48\xff\x01\xc3",  # mov [rcx + 8 r8 + 8], rax; lock inc qword [rcx]; ret
        )
    )
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    own_stack = mmap.mmap(-1, 1 << 18)

    class Stack(ctypes.Structure):
        _fields_ = [("where", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]

    libc.sigaltstack(ctypes.byref(Stack(ctypes.addressof(ctypes.c_char.from_buffer(own_stack)), 0, 1 << 18)), None)
    handle(signal.SIGALRM, ctypes.addressof(ctypes.c_char.from_buffer(page)), SA_RESTART | SA_SIGINFO | SA_ONSTACK)
    mappings = Path("/proc/self/maps").read_text().splitlines()
    (bounds,) = (line.split()[0] for line in mappings if line.endswith("[stack]"))
    low, high = (int(each, 16) for each in bounds.split("-"))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    rng = np.random.default_rng(4)
    for name, make in KERNELS.items():
        samples[0], end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            once = make(rng, lambda array: array)
            for _ in range(50):
                once()
        taken = samples[1 : 1 + min(samples[0], 65536)]
        outside = sum(not low - (8 << 20) <= each < high for each in taken)
        print(f"{name}: {outside} of {len(taken)} outside")
    signal.setitimer(signal.ITIMER_REAL, 0)  # before the handler and its stack are gone


if __name__ == "__main__":
    what, number = sys.argv[1:]
    if what == "guard":
        guard(int(number))
    else:
        stack(float(number))
