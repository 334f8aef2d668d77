"""PyTorch at its best computes the same: only a row that says bfloat16 has other arithmetic."""

import numpy as np
import pytest

from paddle_tfm import runtime
from paddle_tfm.bench import settings

pytest.importorskip("torch", reason="the extra [bench]")
MODEL = [
    *("model.d_model=16", "model.num_heads=2", "model.d_ff=24", "model.encoder_layers=2", "model.decoder_layers=1"),
    *("model.max_length=24", "train.max_tokens=240", "task.train=20", "task.min_length=4", "train.clip_norm=0.5"),
]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def sides(tmp_path):
    """Our side, PyTorch's and the tuned one, in this process."""
    runtime.load_paddle()
    from paddle_tfm.bench import ours, pytorch, tuned
    from paddle_tfm.bench.workload import Workload

    settings.prepare(tmp_path, settings.settings("base", [*MODEL, "model.dropout=0.0"]), 2)
    mine = ours.Side(tmp_path)
    mine.workload().write(tmp_path)
    workload = Workload.read(tmp_path)
    return mine, pytorch.Side(workload), tuned.Side(workload)


def gradients(side):
    side.optimizer.zero_grad()
    side.backward(0)
    return {name: parameter.grad.numpy().copy() for name, parameter in side.model.named_parameters()}


def test_in_float32_the_tuned_step_is_pytorchs(sides):
    from paddle_tfm.bench import tuned

    mine, plain, best = sides
    assert not mine.batches[0].target_valid.all(), "no padding: leaving it out is not tried"
    best.use(tuned.CANDIDATES[0])
    assert best.first_loss() == pytest.approx(mine.first_loss(), abs=1e-5), "the race left the weights as they were"
    expected = gradients(plain)
    for name, gradient in gradients(best).items():
        np.testing.assert_allclose(gradient, expected[name], atol=1e-6, err_msg=name)
    plain.optimizer.zero_grad()
    best.optimizer.zero_grad()
    for number in range(4):
        plain.step(number)
        best.step(number)
    assert best.first_loss() == pytest.approx(plain.first_loss(), abs=1e-5), "clipping and Adam are the same"


def test_the_fastest_candidate_is_kept_and_named(sides):
    best = sides[-1]
    assert best.candidate == min(best.seconds, key=best.seconds.__getitem__)
    assert best.precision == best.candidate.precision
    assert len(best.seconds) == 2 and all(seconds > 0 for seconds in best.seconds.values())


def test_autocast_has_the_arithmetic_that_its_row_says(sides):
    from paddle_tfm.bench import tuned

    _, plain, best = sides
    best.use(next(candidate for candidate in tuned.CANDIDATES if candidate.autocast))
    assert best.precision == "bfloat16 autocast"
    difference = abs(best.first_loss() - plain.first_loss())
    assert 1e-6 < difference < 0.02
    assert {parameter.dtype for parameter in best.model.parameters()} == {plain.peer.output.weight.dtype}, "masters"
