"""What neither a formula nor the kit sees of attentions: the weights of their branch, what is dropped of a difference,
neighbours, and memory."""

import numpy as np
import paddle
import pytest

from paddle_tfm import memory
from paddle_tfm.layers import Dropout
from paddle_tfm.protocols import LayerSite, Mask, PositionalEncoding, Tap, TokenInfo

SITE = LayerSite("decoder", "self", 0, 1, 1)
BRANCHES = {  # name → how many matrices scale what it gives
    "multihead": 2, "single_head": 1, "linear": 2, "grouped_query": 2, "mla": 2, "differential": 1, "synthesizer": 2,
}  # fmt: skip


@pytest.fixture
def made(registry):
    """An attention of 8 channels, its parameters drawn, without biases."""

    def make(name, heads=2, site=SITE, **options):
        givens = {"d_model": 8, "num_heads": heads, "dropout": 0.0, "max_length": 16, "site": site}
        attention, rng = registry.build("attention", {"name": name, **options}, **givens), np.random.default_rng(0)
        for key, parameter in attention.named_parameters():
            scale = 0.0 if key in ("value.bias", "output.bias") else 0.5
            parameter.set_value(rng.normal(0, 1, parameter.shape).astype("float32") * np.float32(scale))
        return attention

    return make


def attend(attention, x, positions=None, valid=None):
    positions = paddle.arange(x.shape[1]) if positions is None else paddle.to_tensor(positions)
    valid = paddle.ones(x.shape[:2], "bool") if valid is None else paddle.to_tensor([valid]).astype("bool")
    here = TokenInfo(PositionalEncoding(), positions.unsqueeze(0), valid)
    mask = Mask(here.positions, here.positions, here.valid, True)
    return attention(x, attention.project(x, here), here, mask, Tap()).numpy()


@pytest.mark.parametrize("name", BRANCHES)
def test_branch_weights_scale_the_branch_and_not_its_scores(made, name):
    attention, x = made(name, heads=4), paddle.randn([2, 4, 8])
    before, weights = attend(attention, x), attention.branch_weights()
    for weight in weights:
        weight.set_value(weight * 2.0)
    np.testing.assert_allclose(attend(attention, x), before * 2.0 ** len(weights), rtol=1e-4, atol=1e-4)
    assert len(weights) == BRANCHES[name]


def test_dropout_falls_on_the_difference_of_two_softmaxes(made):
    """With one key and the norm of each head, a head is what it was, or nothing; were the softmaxes dropped one by one,
    it would change its sign where only the first is gone."""
    attention, x = made("differential", bias=False), paddle.ones([64, 1, 8])
    attention.output.weight.set_value(paddle.eye(8))
    for vector in (attention.lambda_q1, attention.lambda_q2):
        vector.set_value(paddle.zeros_like(vector))  # λ is 0.2
    attention.dropout = Dropout(0.5)
    attention.eval()
    whole = attend(attention, x).reshape(-1, 8)
    paddle.seed(3)
    attention.train()
    heads = attend(attention, x).reshape(-1, 8)
    gone = (heads == 0).all(-1)
    assert 0 < gone.sum() < len(gone)
    np.testing.assert_allclose(heads[~gone], whole[~gone], rtol=1e-2)


@pytest.mark.parametrize("dynamic", [False, True])
def test_neighbours_of_a_convolution_are_those_at_neighbouring_positions(made, dynamic):
    """Padding before, between and behind the tokens changes nothing; what is out of reach is not seen."""
    attention, x, junk = (
        made("convolution", kernel=3, dynamic=dynamic),
        paddle.randn([1, 3, 8]),
        30 * paddle.ones([1, 1, 8]),
    )
    spread = paddle.concat([junk, x[:, :1], junk, x[:, 1:], junk], 1)
    moved = attend(attention, spread, [9, 5, 7, 6, 7, 8], [0, 1, 0, 1, 1, 0])
    np.testing.assert_allclose(moved[:, [1, 3, 4]], attend(attention, x), rtol=1e-4, atol=1e-5)
    alone = np.concatenate([attend(attention, x[:, i : i + 1]) for i in range(3)], 1)
    np.testing.assert_allclose(attend(attention, x, [0, 10, 20]), alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sublayer", ["self", "cross"])
def test_a_row_that_sees_nothing_passes_large_gradients_on_as_zeros(made, sublayer):
    attention, x = made("linear", site=LayerSite("decoder", sublayer, 0, 1, 1)), paddle.randn([1, 2, 8])
    x.stop_gradient = False
    here = TokenInfo(PositionalEncoding(), paddle.arange(2).unsqueeze(0), paddle.zeros([1, 2], "bool"))
    mask = Mask(here.positions, here.positions, here.valid, sublayer == "self")
    (attention(x, attention.project(x, here), here, mask, Tap()) * 1e12).sum().backward()
    for tensor in (x, attention.query.weight, attention.key.weight, attention.value.weight):
        np.testing.assert_array_equal(tensor.grad.numpy(), 0.0)


def test_the_past_of_linear_attention_has_one_size(made):
    attention, state, sizes = made("linear"), None, set()
    for t in range(4):
        here = TokenInfo(PositionalEncoding(), paddle.full([1, 1], t, "int64"), paddle.ones([2, 1], "bool"))
        new = attention.project(paddle.randn([2, 1, 8]), here)
        state = new if state is None else state.extend(new)
        sizes.add((*state.key.shape, *state.value.shape, *(state.past.outer.shape if t else [2, 2, 4, 4])))
    assert len(sizes) == 1


@pytest.mark.parametrize("options", [{}, {"mode": "random"}, {"mode": "random", "rank": 3}], ids=str)
def test_beyond_max_length_the_last_position_of_a_synthesizer_serves(made, options):
    attention, x = made("synthesizer", **options), paddle.randn([1, 3, 8])
    outputs = []
    for far in ([14, 15, 16], [14, 20, 1000]):
        here = TokenInfo(PositionalEncoding(), paddle.to_tensor([far]), paddle.ones([1, 3], "bool"))
        mask = Mask(here.positions, here.positions, here.valid, False)
        outputs.append(attention(x, attention.project(x, here), here, mask, Tap()).numpy())
    np.testing.assert_array_equal(*outputs)


@pytest.mark.parametrize(("encoding", "held"), [("none", 6), ("shaw", 20), ("transformer_xl", 20), ("fire", 64)])
def test_what_an_encoding_takes_counts(make_model, monkeypatch, encoding, held):
    model = make_model(f"model.position={{encoder: {encoding}, decoder: none, cross: none}}", "model.num_heads=1")
    tokens, valid = paddle.full([1, 256], 5, "int64"), paddle.ones([1, 256], "bool")
    monkeypatch.setattr(memory, "MUCH", 0)
    monkeypatch.setattr(memory, "free", lambda: 4.0 * held * 256 * 256)
    model.encode(tokens, valid)
    monkeypatch.setattr(memory, "free", lambda: 4.0 * held * 256 * 256 - 1)
    with pytest.raises(MemoryError, match=r"of 256 tokens to 256 needs .* GB, but .* GB are free"):
        model.encode(tokens, valid)


@pytest.mark.parametrize(
    "name", ["multihead", "grouped_query", "talking_heads", "mla", "synthesizer", "convolution", "linear"]
)
def test_a_text_whose_pairs_fill_the_memory_is_refused_before(make_model, monkeypatch, name):
    model = make_model(f"model.attention={{encoder: multihead, decoder: {{self: {name}, cross: multihead}}}}")
    tokens, valid = paddle.full([1, 256], 5, "int64"), paddle.ones([1, 256], "bool")
    start = model.start(model.encode(tokens[:, :3], valid[:, :3]))
    monkeypatch.setattr(memory, "MUCH", 0)
    monkeypatch.setattr(memory, "free", lambda: 4.0 * 2 * 256 * 256)  # as much as the scores of two heads alone
    model.decode(tokens[:, :32], start)
    with pytest.raises(MemoryError, match=r"attention of 256 tokens to 256 needs .* GB, but .* GB are free"):
        model.decode(tokens, start)
