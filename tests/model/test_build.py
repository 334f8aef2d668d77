"""Building: the right component at each site, refusals by name, initial values paired between variants."""

import math

import numpy as np
import paddle
import pytest

from paddle_tfm import RecipeError
from paddle_tfm.model.initialize import calibrate
from paddle_tfm.protocols import Tap


def named(model):
    return {name: parameter.numpy() for name, parameter in model.named_parameters()}


def test_variants_of_a_seed_start_from_the_same_values(make_model):
    pre, post = named(make_model("model.placement=pre")), named(make_model("model.placement=post"))
    common = pre.keys() & post.keys()
    assert len(common) > 50
    for name in common:
        np.testing.assert_array_equal(pre[name], post[name])
    deeper = named(make_model("model.decoder_layers=3"))
    for name in pre:
        np.testing.assert_array_equal(pre[name], deeper[name])
    other = named(make_model(seed=4))
    assert not np.array_equal(other["head.weight" if "head.weight" in other else "head.output.weight"], pre["head.weight" if "head.weight" in pre else "head.output.weight"])  # fmt: skip


@pytest.mark.parametrize("head", ["linear", "tied"])
def test_the_padding_row_is_zero_and_learns_nothing(make_model, make_batch, head):
    model = make_model(f"model.head={head}")
    model.train()
    model.loss(make_batch(extra_padding=2)).backward()
    for embedding in (model.source_embedding, model.target_embedding):
        assert not embedding.weight.numpy()[0].any()
        assert not embedding.weight.grad.numpy()[0].any()
        assert embedding.weight.grad.numpy()[4:].any()


def test_the_embedding_is_multiplied_by_sqrt_d_model(make_model):
    ids = paddle.to_tensor([[5, 6]])
    scaled, plain = make_model(), make_model("model.scale_embedding=false")
    np.testing.assert_allclose(scaled.source_embedding(ids).numpy(), plain.source_embedding(ids).numpy() * math.sqrt(16), rtol=1e-6)  # fmt: skip
    beyond = paddle.to_tensor([[13, 20]])  # words copied from the source, fed back: the unknown token's row
    np.testing.assert_array_equal(
        plain.target_embedding(beyond).numpy()[0, 0], plain.target_embedding.weight.numpy()[3]
    )


def test_shared_and_tied_tables_are_counted_and_stored_once(make_model):
    def count(model):
        return sum(int(parameter.size) for parameter in model.parameters())

    apart, shared = make_model(), make_model("model.share_embeddings=true", "vocabulary.shared=true")
    tied = make_model("model.share_embeddings=true", "vocabulary.shared=true", "model.head=tied")
    assert count(apart) - count(shared) == 13 * 16
    assert count(shared) - count(tied) == 13 * 16 + 13  # the head's matrix and bias
    assert len(tied.state_dict()) == len({id(tensor) for tensor in tied.state_dict().values()})


def test_shared_embeddings_need_one_vocabulary():
    from paddle_tfm import build_model

    with pytest.raises(RecipeError, match=r"vocabulary.shared=true"):
        build_model(
            "base",
            ["model.share_embeddings=true", "vocabulary.shared=true"],
            source_vocabulary=10,
            target_vocabulary=11,
        )


def test_admin_is_calibrated_from_data(make_model, make_batch):
    """ω² of a sublayer is the variance of the stack's input plus that of the branches before it, over real tokens; the
    first ω is 1, as in the code of arXiv:2004.08249."""
    model, batch = make_model("model.placement=admin"), make_batch()
    tap = Tap(recording=True)
    with paddle.no_grad():
        model(batch, tap)
    seen = dict(tap.recorded)
    calibrate(model, batch)
    valid = batch.target_valid.numpy()
    total, expected = seen["decoder.input"].numpy()[valid].var(ddof=1), []
    for layer in range(2):
        for sublayer in ("self", "cross", "feed_forward"):
            expected.append(math.sqrt(total))
            total += seen[f"decoder.{layer}.{sublayer}.branch"].numpy()[valid].var(ddof=1)
    omegas = [p.numpy() for name, p in model.named_parameters() if name.startswith("decoder.") and "omega" in name]
    expected[0] = 1.0
    assert len(omegas) == len(expected) == 6
    for omega, value in zip(omegas, expected):
        np.testing.assert_allclose(omega, value, rtol=1e-4)
