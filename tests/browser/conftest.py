"""A browser, and finished runs to report on: real trainings of small models."""

import pytest
from chromium import Chromium, program

import paddle_tfm

SMALL = ["model.d_model=16", "model.num_heads=2", "model.d_ff=16", "task.train=400", "task.valid=40", "task.test=40"]
VARIANTS = (
    "variants={base: {model.norm: layer}, a-variant-with-quite-a-long-name-that-nobody-would-type-twice: {model.norm: rms}, "
    "旋转位置: {model.position: rotary}, lost: {train.schedule: {name: constant, learning_rate: 1.0e+30}}}"
)


@pytest.fixture(scope="session")
def chromium():
    if program() is None:
        pytest.fail("these tests need Chromium: install it (apt-get install chromium), or name it in CHROMIUM")
    browser = Chromium()
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """The folder of a comparison of four variants with two seeds each."""
    folder = tmp_path_factory.mktemp("runs") / "dates"
    settings = [*SMALL, "train.steps=30", "evaluate.every=10", "seeds=[1,2]", "baseline=base"]
    settings.append("evaluate.best=token_accuracy")
    paddle_tfm.run("dates", [*settings, VARIANTS], out=folder)
    return folder
