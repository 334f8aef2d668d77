"""The device that these tests run on: the first GPU, or what PADDLE_TFM_GPU_TESTS names. With `cpu` they run where there
is none, which shows that the tests themselves are sound."""

import os

os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")  # the kit asks for the digits of float32

import paddle
import pytest

from paddle_tfm import create_registry, load_recipe
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.train.run import create
from paddle_tfm.train.trainer import Interrupted, Trainer

WANTED = os.environ.get("PADDLE_TFM_GPU_TESTS", "gpu:0")
TINY = [
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 5, train: 200, valid: 20, test: 20}",
    "model.d_model=32", "model.num_heads=2", "model.d_ff=48", "model.encoder_layers=2", "model.decoder_layers=2",
    "model.max_length=10", "model.dropout=0.1", "train.max_tokens=128", "train.steps=24", "evaluate.every=8",
    "evaluate.examples=10", "train.schedule={name: inverse_sqrt, peak: 3e-3, warmup: 4}",
]  # fmt: skip


def why_not() -> str | None:
    """Why the device is not to be had: a sentence; None where it is."""
    if WANTED == "cpu":
        return None
    hint = "PADDLE_TFM_GPU_TESTS=cpu runs these tests on the CPU"
    if not paddle.is_compiled_with_cuda():
        return f"this Paddle is built for CPUs only, so that nothing is tried on a GPU; {hint}"
    if not paddle.device.cuda.device_count():
        return f"Paddle finds no GPU, so that nothing is tried on one; {hint}"
    return None


@pytest.fixture(autouse=True)
def device():
    """The device, which is Paddle's within a test."""
    if reason := why_not():
        pytest.skip(reason)
    before = paddle.device.get_device()
    paddle.set_device(WANTED)
    yield WANTED
    paddle.set_device(before)


@pytest.fixture
def make_trainer(tmp_path):
    """A trainer of a small recipe on the device that is Paddle's when it is made."""

    def make(*overrides, folder="run", **options):
        registry = create_registry()
        plan = plan_run(load_recipe("base", [*TINY, *overrides]).runs()[0], registry).require_sound("base")
        place = tmp_path / folder
        run = create(plan, place, load_corpus(plan), resume=(place / "identity.json").exists())
        return Trainer(run, registry.plugins, **options)

    return make


@pytest.fixture
def train_in_parts(make_trainer):
    """Train a run that is stopped after each of the steps `stops`, and resumed each time by newly made objects: its
    folder."""

    def train(*overrides, stops, folder="parts"):
        for stop in stops:
            trainer = make_trainer(*overrides, folder=folder)
            trainer.stop = lambda run=trainer.run, stop=stop: run.step >= stop
            with pytest.raises(Interrupted):
                trainer.train(resume=True)
        trainer = make_trainer(*overrides, folder=folder)
        trainer.train(resume=True)
        return trainer.run.folder

    return train
