"""R-Drop against its formula in NumPy, and what it leaves as it was."""

import numpy as np
import paddle
import pytest

from paddle_tfm import memory, randomness
from paddle_tfm.data.batches import collate
from paddle_tfm.protocols import Tap
from paddle_tfm.train.objective import objective
from paddle_tfm.train.trainer import Trainer


def log_softmax(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


@pytest.mark.parametrize("head", ["linear", "tied", "pointer"])
def test_r_drop_is_half_of_the_papers_loss(make_model, make_batch, head):
    """Σ over tokens of ½ (−log p − log q) + α/4 (KL(p‖q) + KL(q‖p)), padding left out."""
    model, batch, alpha = make_model(f"model.head={head}", "model.dropout=0.4"), make_batch(), 3.0
    model.train()
    kept = []
    head_log_probs = model.head.log_probs
    model.head.log_probs = lambda h, memory: kept.append(head_log_probs(h, memory)) or kept[-1]
    with randomness.random_context(1, 1):
        value = float(objective(model, batch, 0.0, alpha, Tap()))
    p, q = (kept[0].numpy().astype("float64")[k::2] for k in (0, 1))
    assert np.abs(p - q).max() > 0.01, "two passes must differ by their dropout"
    target, valid = batch.target_out.numpy(), batch.target_valid.numpy()
    chosen = sum(-np.take_along_axis(one, target[..., None], -1)[..., 0] for one in (p, q))
    divergence = (np.exp(p) * (p - q)).sum(-1) + (np.exp(q) * (q - p)).sum(-1)
    expected = ((0.5 * chosen + 0.25 * alpha * divergence) * valid).sum()
    assert value == pytest.approx(expected, rel=1e-5)


def test_without_dropout_r_drop_is_the_cross_entropy(make_model, make_batch):
    model, batch = make_model("model.dropout=0.0"), make_batch()
    model.train()
    plain = objective(model, batch, 0.1, 0.0, Tap())
    assert float(objective(model, batch, 0.1, 5.0, Tap())) == pytest.approx(float(plain), rel=1e-5)
    assert float(plain) == pytest.approx(float(model.loss(batch, 0.1)), rel=1e-7)


def test_padding_does_not_count_in_r_drop(make_model, make_batch):
    model = make_model("model.dropout=0.0")
    model.train()
    values = [float(objective(model, make_batch(extra_padding=n), 0.0, 2.0, Tap())) for n in (0, 5)]
    assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_a_model_whose_training_fills_the_memory_is_refused_before(make_trainer, registry, monkeypatch):
    """Its parameters fit; its gradients and moments do not."""
    run = make_trainer().run
    numbers = run.parameters()
    monkeypatch.setattr(memory, "MUCH", 0)
    monkeypatch.setattr(memory, "free", lambda: 12.0 * numbers)
    Trainer(run, registry.plugins)
    monkeypatch.setattr(memory, "free", lambda: 12.0 * numbers - 1)
    with pytest.raises(MemoryError, match=f"the training of {numbers:,} parameters needs .* GB, but"):
        Trainer(run, registry.plugins)


@pytest.mark.parametrize(("smoothing", "alpha"), [(0.0, 2.0), (0.3, 0.0), (0.3, 2.0), (0.0, 0.0)])
def test_a_step_makes_the_recipe_s_objective_small(make_trainer, smoothing, alpha):
    """What is logged is the objective of the recipe's settings, under the dropout of that step."""
    trainer = make_trainer(f"train.r_drop={alpha}", f"train.label_smoothing={smoothing}")
    model, batch = trainer.run.model, collate(trainer.run.encoded["train"][:8])
    model.train()
    with randomness.random_context(trainer.run.seed, 1), paddle.no_grad():
        expected = float(objective(model, batch.tensors(), smoothing, alpha, Tap())) / batch.tokens
    assert trainer.step(1, [batch]).loss == pytest.approx(expected, rel=1e-6)


def test_mixed_precision_is_refused_on_a_cpu(make_trainer):
    from paddle_tfm import UserError

    with pytest.raises(UserError, match=r"train\.precision=bfloat16 needs a GPU"):
        make_trainer("train.precision=bfloat16")
