"""What the tests against peers share: sites, sentences with padding, and weights carried over into PyTorch."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, Mask, PositionalEncoding, Tap, TokenInfo

torch = pytest.importorskip("torch")

D_MODEL, HEADS, HEAD_DIM, D_FF, LENGTH, MAX_LENGTH = 16, 4, 4, 24, 7, 32
ENCODER = LayerSite("encoder", "self", 0, 2, 3)
DECODER = LayerSite("decoder", "self", 0, 2, 3)
CROSS = LayerSite("decoder", "cross", 0, 2, 3)
FEED_FORWARD = LayerSite("decoder", "feed_forward", 0, 2, 3)
GIVEN = {"d_model": D_MODEL, "num_heads": HEADS, "dropout": 0.0, "max_length": MAX_LENGTH}
ENDED = np.arange(LENGTH) < np.array([[7], [5], [2]])  # padding at the end alone
VALID = ENDED & (
    np.arange(LENGTH) != np.array([[9], [1], [9]])
)  # and before real tokens, which a causal mask shows it to
SOURCE_VALID = np.arange(5) < np.array([[3], [5], [1]])

# Peers that compute norms or softmaxes in float32 whatever the precision of their inputs.
single = pytest.mark.parametrize("precision", ["float32"], indirect=True)


def copy(peer, arrays):
    """Give a module the parameters `arrays`, by name: each of its own, and no others."""
    parameters = dict(peer.named_parameters(remove_duplicate=False))
    assert parameters.keys() == arrays.keys(), sorted(parameters.keys() ^ arrays.keys())
    with torch.no_grad():
        for name, parameter in parameters.items():
            assert tuple(parameter.shape) == arrays[name].shape, f"{name}: {parameter.shape}, {arrays[name].shape}"
            parameter.copy_(torch.from_numpy(np.array(arrays[name], order="C")))
        for name, parameter in parameters.items():  # not overwritten by another name of the same tensor
            assert np.array_equal(parameter.numpy(), arrays[name].astype(parameter.numpy().dtype)), name
    return peer.eval()


def transposed(w, pairs):
    """Linear layers of PyTorch, which are [out, in], by the names of ours, [in, out]: {theirs: ours} → arrays."""
    arrays = as_they_are(w, pairs)
    return {name: array.T for name, array in arrays.items()}  # a bias [out] stays as it is


def linear(w, name):
    """A torch.nn.Linear with the weights of one of ours."""
    arrays = {part: w[f"{name}.{part}"].T for part in ("weight", "bias") if f"{name}.{part}" in w}
    return copy(torch.nn.Linear(*w[f"{name}.weight"].shape, bias="bias" in arrays), arrays)


def as_they_are(w, pairs):
    """Weights and biases of norms and tables, by the names of ours: {theirs: ours} → arrays."""
    return {
        f"{theirs}.{part}": w[f"{ours}.{part}"]
        for theirs, ours in pairs.items()
        for part in ("weight", "bias")
        if f"{ours}.{part}" in w
    }


def halves(array, heads):
    """Channels [..., heads · D] from our order, pairs side by side, to that of peers that have the first of all pairs
    and then the second of all pairs in each head."""
    split = array.reshape(*array.shape[:-1], heads, -1, 2)
    return np.ascontiguousarray(np.swapaxes(split, -1, -2)).reshape(array.shape)


def sentences(rng, site, valid=VALID):
    """Queries x [3, 7, C] with their validity, and what they look at with its own: themselves, or across another
    text."""
    x = rng.normal(size=(3, LENGTH, D_MODEL))
    if site.sublayer != "cross":
        return x, valid, x, valid
    return x, valid, rng.normal(size=(3, SOURCE_VALID.shape[1], D_MODEL)), SOURCE_VALID


def positions(length):
    return paddle.arange(length, dtype="int64").unsqueeze(0)


def attend(attention, precision, site, x, x_valid, source, source_valid, encoding=None):
    """One pass as the engine makes it, at the real queries: [N, C]."""
    encoding = PositionalEncoding() if encoding is None else encoding
    q_positions, k_positions = positions(x.shape[1]), positions(source.shape[1])
    x, source, real, source_valid = (precision.ours(array) for array in (x, source, x_valid, source_valid))
    kv = attention.project(source, TokenInfo(encoding, k_positions, source_valid))
    mask = Mask(q_positions, k_positions, source_valid, site.causal, encoding)
    return attention(x, kv, TokenInfo(encoding, q_positions, real), mask, Tap()).numpy()[x_valid]


def token_info(precision, valid=VALID):
    """Tokens without a positional encoding, for components that need only know the padding."""
    return TokenInfo(PositionalEncoding(), positions(valid.shape[1]), precision.ours(valid))


def additive(precision, source_valid, queries, causal):
    """The additive mask of Transformers: [B, 1, Tq, Tk], 0 where a key is visible and the lowest number where not."""
    visible = np.broadcast_to(source_valid[:, None, None, :], (len(source_valid), 1, queries, source_valid.shape[1]))
    if causal:
        visible = visible & np.tril(np.ones((queries, source_valid.shape[1]), bool))
    return precision.theirs(np.where(visible, 0.0, np.finfo(precision.dtype).min))
