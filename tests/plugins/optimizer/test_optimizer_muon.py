"""Muon: singular values made equal, for the matrices of the stacks."""

import paddle_tfm

# isort: split
import numpy as np
import paddle

from paddle_tfm_plugins.optimizer.muon import is_hidden_matrix, orthogonalize


def test_five_steps_bring_singular_values_to_the_range_of_the_docstring():
    before, after = [], []
    for small in np.geomspace(1e-4, 1.0, 400):
        values = np.array([1.0, small])
        before += [*(values / np.linalg.norm(values))]
        after += [*np.diag(orthogonalize(paddle.to_tensor(np.diag(values)), 5).numpy())]
    before, after = np.array(before), np.array(after)
    assert after.min() > 0 and 1.20 < after.max() < 1.21
    assert 0.68 < after[before >= 0.01].min() < 0.69 and 1.13 < after[before >= 0.01].max() < 1.14


def test_it_finds_the_matrices_of_a_real_model():
    model = paddle_tfm.build_model("base", ["model.d_model=16"], source_vocabulary=9, target_vocabulary=9)
    hidden = {p.name for p in model.parameters() if is_hidden_matrix(p)}
    inside = ("query", "key", "value", "output", "inner")
    expected = {name for name, p in model.named_parameters() if ".layers." in name and p.ndim == 2}
    assert hidden == expected and len(hidden) == 2 * (4 + 2) + 2 * (8 + 2)
    assert all(name.split(".")[-2] in inside for name in hidden)


def test_mixers_and_kernels_are_no_matrices():
    """Orthogonalized, the mixer of the streams would move as far as all of its weights together."""
    decoder = "decoder: {self: gated_deltanet, cross: talking_heads}"
    overrides = ["model.d_model=16", "model.num_heads=2", "model.placement=hyper_connections"]
    overrides.append(f"model.attention={{encoder: convolution, {decoder}}}")
    model = paddle_tfm.build_model("base", overrides, source_vocabulary=9, target_vocabulary=9)
    ends = ("alphas.0", "kernel", "mix_scores", "self_attention.weight")
    others = [p for p in model.parameters() if p.name.endswith(ends)]
    assert len(others) >= 4 and not any(is_hidden_matrix(p) for p in others)
    assert any(is_hidden_matrix(p) for p in model.parameters())
