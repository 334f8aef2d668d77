"""Signals that arrive within a kernel, and what lies beside its operands.

`dnnl_sgemm` of oneDNN 3.6.2 computes with its stack pointer in a workspace on the heap, so that the frame of a handler is
written over other chunks: Ctrl-C ended trainings by heap corruption. Everything runs in plain processes, as users'
do: pytest's faulthandler gives handlers a stack of their own, which hides this.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paddle_tfm import create_registry
from paddle_tfm.kernels.cpu.library import why_not
from paddle_tfm.testing import PASS, examine
from paddle_tfm.testing.same_runs import differences

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.skipif(sys.platform != "linux", reason="signals and pages as on Linux"),
]
# d_model, d_ff and tokens are those of a training that a user waits for: smaller products never failed.
TRAINING = [
    *("run", "base", "--device=cpu", "--workers=1", "seeds=[1]", "train.steps=6", "evaluate.every=3", "train.max_tokens=1024"),
    "task={name: reverse, symbols: 50, min_length: 20, max_length: 30, train: 2000, valid: 16, test: 16}",
    *("model.d_model=512", "model.num_heads=8", "model.d_ff=1024", "model.encoder_layers=1", "model.decoder_layers=1"),
]  # fmt: skip


def run(*command, threads=1):
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, *map(str, command)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout


@pytest.mark.reliability
def test_a_kernel_touches_nothing_beyond_its_operands():
    """What a kernel reads and writes ends at, or begins behind, a page that may not be touched."""
    registry = create_registry()
    for entry in [each for each in registry if each.kind == "kernel" and each.load().device == "cpu"]:
        outcome = examine("kernel", entry.name, registry=registry, only=frozenset({"in_bounds"}))["in_bounds"]
        assert outcome.status == PASS, outcome


@pytest.mark.reliability
@pytest.mark.parametrize("threads", [1, 2])
def test_a_training_under_thousands_of_signals_ends_with_the_same_bits(tmp_path, threads):
    run("-m", "paddle_tfm", *TRAINING, f"--out={tmp_path / 'alone'}", threads=threads)
    for handler in ("python", "system"):
        said = run(HERE / "under_signals.py", handler, *TRAINING, f"--out={tmp_path / handler}", threads=threads)
        assert handler == "system" or int(said.rstrip().splitlines()[-1].split()[0]) > 2000, said
        assert differences(tmp_path / "alone/default/seed-1", tmp_path / handler / "default/seed-1") == []
