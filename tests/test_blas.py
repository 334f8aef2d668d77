"""The path of the BLAS is chosen by the processor's flags, checked before it is used, and part of what a run was."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from paddle_tfm import blas

AVX2 = "fpu sse sse2 ssse3 fma sse4_1 sse4_2 avx f16c avx2 bmi2"
AVX512 = f"{AVX2} avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl"


def cpuinfo(maker: str, flags: str, cores: int = 2) -> str:
    core = (
        "processor\t: {}\nvendor_id\t: {}\ncpu family\t: 25\nmodel name\t: A processor: 2 cores\nflags\t\t: {}\n"
        "bugs\t\t: sysret_ss_attrs null_seg\n"
    )
    return "\n".join(core.format(i, maker, flags) for i in range(cores))


ARM = "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm aes sve bf16\nCPU implementer\t: 0x41\n"
PROCESSORS = {
    "Zen 2": (cpuinfo("AuthenticAMD", AVX2), ["avx2"], "5"),
    "Zen 4": (cpuinfo("AuthenticAMD", f"{AVX512} avx512_bf16 avx512_vnni"), ["avx512", "avx2"], "7"),
    "Zen 5": (cpuinfo("AuthenticAMD", f"{AVX512} avx512_bf16 avx_vnni avx512_vp2intersect"), ["avx512", "avx2"], "7"),
    "Zen 4 whose host hides a part": (cpuinfo("AuthenticAMD", AVX512.replace("avx512vl", "")), ["avx2"], "5"),
    "AMD before AVX2": (cpuinfo("AuthenticAMD", "fpu sse sse2 ssse3 fma4 avx"), [], None),
    "Hygon": (cpuinfo("HygonGenuine", AVX2), ["avx2"], "5"),
    "Intel with AVX-512": (cpuinfo("GenuineIntel", AVX512), ["avx512", "avx2"], None),
    "Intel with AVX2": (cpuinfo("GenuineIntel", AVX2), ["avx2"], None),
    "ARM": (ARM, [], None),
    "an empty file": ("", [], None),
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_the_widest_path_that_the_flags_allow_is_set_and_nothing_on_intels(name, tmp_path):
    text, paths, setting = PROCESSORS[name]
    (tmp_path / "cpuinfo").write_text(text)
    processor = blas.Processor.read(tmp_path / "cpuinfo")
    assert (processor.paths, processor.setting) == (paths, setting)


def test_without_proc_nothing_is_known(tmp_path):
    assert blas.Processor.read(tmp_path / "none") == blas.Processor()


@pytest.mark.parametrize("name", ["Zen 5", "Intel with AVX-512", "Intel with AVX2"])
@pytest.mark.parametrize("value", [None, "5", "4"])
def test_the_path_in_use_is_the_users_or_the_processors(monkeypatch, name, value):
    processor = blas.Processor.parse(PROCESSORS[name][0])
    monkeypatch.setattr(blas.Processor, "read", lambda: processor)
    monkeypatch.delenv(blas.VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(blas.VARIABLE, value)
        assert blas.path_in_use() == {"5": "avx2", "7": "avx512"}.get(value, value)
    else:
        expected = {"Intel with AVX-512": "avx512", "Intel with AVX2": "avx2"}
        assert blas.path_in_use() == expected.get(name, "default")


def python(script: str, **variables: str) -> subprocess.CompletedProcess:
    clean = {name: value for name, value in os.environ.items() if name != blas.VARIABLE}
    return subprocess.run(
        [sys.executable, "-c", script], env={**clean, **variables}, capture_output=True, text=True, check=False
    )


LOADING = """
from paddle_tfm import UserError, blas, runtime
blas.Processor.setting = "5"  # as on a processor that is not Intel's
runtime.os.environ.pop(blas.VARIABLE, None)
runtime.SETTINGS.clear()
runtime.prepare()
blas.deviation = lambda: 3e-3
try:
    runtime.load_paddle()
except UserError as error:
    print(error)
"""
needs_avx2 = pytest.mark.skipif("avx2" not in blas.Processor.read().paths, reason="a processor without AVX2")


@pytest.mark.reliability
@needs_avx2
def test_a_path_that_we_set_is_checked_before_it_is_used():
    wrong = python(LOADING).stdout
    assert wrong.startswith("with MKL_DEBUG_CPU_TYPE=5, which paddle_tfm sets on this processor, Paddle's matrix prod")
    assert "are wrong by 0.003; set MKL_DEBUG_CPU_TYPE=0 before you start" in wrong


@pytest.mark.parametrize("fault", ["a last bit", "a wrong entry", "no number"])
def test_the_deviation_tells_rounding_from_a_wrong_product(monkeypatch, fault):
    import paddle

    matmul = paddle.matmul

    def faulty(left, right, **options):
        product = matmul(left, right, **options)
        if fault == "a last bit":
            return product * (1 + 2**-23)
        entry = paddle.zeros_like(product).flatten()
        entry[-1] = float("nan") if fault == "no number" else 1e-3 * float(product.abs().max())
        return product + entry.reshape(product.shape)

    assert blas.deviation() < 1e-6
    monkeypatch.setattr(paddle, "matmul", faulty)
    assert (blas.deviation() > blas.TOLERANCE) == (fault != "a last bit")
