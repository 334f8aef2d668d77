"""A change of low rank, beside the weights of another run and merged with them."""

import numpy as np
import paddle
import pytest
from small_runs import make_run, make_trainer, registry  # noqa: F401

from paddle_tfm.runs import checkpoint
from paddle_tfm_plugins.attention.lora import LoRA
from paddle_tfm_plugins.ctranslate2.attention import lora

LORA = ("model.attention={name: lora, rank: 2}", "train.freeze=['*.weight', '*.bias']")


def test_an_export_gets_one_matrix_that_computes_the_same():
    attention = LoRA(d_model=8, num_heads=2, dropout=0.0, rank=3, alpha=6.0, projections=["query", "output"])
    rng = np.random.default_rng(1)
    for parameter in attention.parameters():
        parameter.set_value(rng.normal(size=parameter.shape).astype("float32"))
    x, parts = paddle.to_tensor(rng.normal(size=[2, 5, 8]).astype("float32")), lora(attention)
    for name in ("query", "key", "value", "output"):
        layer = getattr(attention, name)
        change = 2.0 * layer.down.numpy() @ layer.up.numpy() if name in ("query", "output") else 0.0
        np.testing.assert_allclose(parts[name].weight.numpy(), layer.weight.numpy() + change, rtol=1e-5)
        np.testing.assert_allclose(parts[name](x).numpy(), layer(x).numpy(), rtol=1e-4, atol=1e-4)


def test_only_the_change_is_trained_and_the_model_begins_as_it_was(make_trainer):  # noqa: F811
    source = make_trainer("train.steps=4", folder="source")
    source.train()
    trainer = make_trainer(f"train.from={source.run.folder}", *LORA, folder="lora")
    began = trainer.run.history["start"]
    attentions = ("encoder.layers.0.self", "decoder.layers.0.self", "decoder.layers.0.cross")
    adapters = {
        f"{each}_attention.{name}.{part}"
        for each in attentions
        for name in ("query", "value")
        for part in ("down", "up")
    }
    assert set(began["drawn"]) == adapters and not began["left_out"]
    assert trainer.run.parameters() == 3 * 2 * 2 * 16 * 2
    before = checkpoint.load_arrays(source.run.folder / "checkpoints" / "best")
    results = trainer.train()
    after = checkpoint.load_arrays(trainer.run.folder / "checkpoints" / "last")
    for name, array in after.items():
        if name in adapters:
            assert array.any(), name
        else:
            np.testing.assert_array_equal(array, before[name], err_msg=name)
    assert results["valid"]["loss"] < source.score.valid()[0]["loss"] + 0.05


@pytest.mark.parametrize(("option", "why"), [({"rank": 0}, "rank"), ({"alpha": 0.0}, "alpha")])
def test_options_that_mean_nothing_are_refused(option, why):
    with pytest.raises(ValueError, match=why):
        LoRA(d_model=8, num_heads=2, dropout=0.0, **option)
