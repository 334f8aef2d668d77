"""The path of Paddle's BLAS: which of the processor's instructions its matrix products use.

Paddle's wheels hold an MKL of 2019. It takes the widest path by itself on Intel's processors; on others it takes the
narrowest, unless `MKL_DEBUG_CPU_TYPE` names one before Paddle's libraries load: 5 is AVX2, 7 is AVX-512. The choice is
made from the flags that the system reports, for it lists an instruction only if this process may execute it; a path
that was chosen so is checked by products right after Paddle is imported (`deviation`), and `paddle-tfm doctor` measures
every path in a process of its own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "MKL_DEBUG_CPU_TYPE"
PATHS = {"avx512": "7", "avx2": "5"}  # the widest first → the variable's value
NEEDED_FLAGS = {"avx512": {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}, "avx2": {"avx2", "fma"}}
HEAD_BYTES = 16_384  # of /proc/cpuinfo: the first of its processors; the system reports the same flags for all
TOLERANCE = 1e-5  # of a product in float32, relative to its largest entry; rounding makes less than 1e-6


@dataclass(frozen=True)
class Processor:
    """What decides the path: the maker, as the processor names it (`GenuineIntel`, `AuthenticAMD`, …; "" where
    unknown), and the flags of its instructions."""

    maker: str = ""
    flags: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, cpuinfo: str) -> Processor:
        """From the text of Linux' `/proc/cpuinfo`. Those of ARM have neither maker nor flags by these names."""
        facts: dict[str, str] = {}
        for line in cpuinfo.splitlines():
            name, _, value = line.partition(":")
            facts.setdefault(name.strip(), value.strip())
        return cls(facts.get("vendor_id", ""), frozenset(facts.get("flags", "").split()))

    @classmethod
    def read(cls, file: Path = Path("/proc/cpuinfo")) -> Processor:
        """This machine's; nothing is known without that file, which Linux has."""
        try:
            with file.open(encoding="utf-8", errors="ignore") as lines:
                return cls.parse(lines.read(HEAD_BYTES))
        except OSError:
            return cls()

    @property
    def paths(self) -> list[str]:
        """The paths that this processor can execute, the widest first."""
        return [path for path in PATHS if self.flags >= NEEDED_FLAGS[path]]

    @property
    def setting(self) -> str | None:
        """The variable's value for the widest path; None where MKL chooses well itself, or has no such path."""
        if self.maker == "GenuineIntel" or not self.paths:
            return None
        return PATHS[self.paths[0]]


def path_in_use() -> str:
    """The path of this process: avx512 | avx2 | the user's own value | `default` where MKL decides and is slow, or
    where the BLAS is another. It decides the order in which a product is summed, and so its last bit."""
    value = os.environ.get(VARIABLE)
    if value is not None:
        return next((path for path, number in PATHS.items() if number == value), value)
    processor = Processor.read()
    return processor.paths[0] if processor.maker == "GenuineIntel" and processor.paths else "default"


def deviation() -> float:
    """The largest error of Paddle's products in float32 on the CPU, against NumPy's in float64, relative to the largest
    entry: over shapes with remainders of every register's width, either one transposed, and a batch of small ones.
    About 10 ms."""
    import numpy as np
    import paddle

    rng, place, worst = np.random.default_rng(1), paddle.CPUPlace(), 0.0
    for *batch, m, k, n in ((67, 131, 93), (64, 256, 256), (1, 256, 77), (3, 4, 13, 64, 17)):
        for swap_left, swap_right in ((False, False), (True, False), (False, True)):
            left = rng.standard_normal((*batch, k, m) if swap_left else (*batch, m, k)).astype(np.float32)
            right = rng.standard_normal((*batch, n, k) if swap_right else (*batch, k, n)).astype(np.float32)
            tensors = (paddle.to_tensor(array, place=place) for array in (left, right))
            with paddle.no_grad():
                product = paddle.matmul(*tensors, transpose_x=swap_left, transpose_y=swap_right).numpy()
            wide = [array.astype(np.float64) for array in (left, right)]
            wide = [array.swapaxes(-1, -2) if swap else array for array, swap in zip(wide, (swap_left, swap_right))]
            exact = wide[0] @ wide[1]
            error = np.abs(product - exact).max() / np.abs(exact).max()
            worst = max(worst, float(error) if np.isfinite(error) else float("inf"))
    return worst
