"""What the tests against the papers share: sites, random sentences with padding, and the passage from Paddle to
NumPy."""

import numpy as np
import paddle

from paddle_tfm.protocols import LayerSite, Mask, PositionalEncoding, Tap, TokenInfo

D_MODEL, HEADS, HEAD_DIM, D_FF, LENGTH, MAX_LENGTH = 12, 3, 4, 10, 6, 16
ENCODER = LayerSite("encoder", "self", 0, 2, 3)
DECODER = LayerSite("decoder", "self", 0, 2, 3)
CROSS = LayerSite("decoder", "cross", 0, 2, 3)
FEED_FORWARD = LayerSite("decoder", "feed_forward", 0, 2, 3)
SITES = [ENCODER, DECODER, CROSS]
VALID = np.array([[True] * 6, [True] * 4 + [False] * 2, [True] * 2 + [False] * 4])
SOURCE_VALID = np.array([[True] * 3 + [False] * 2, [True] * 5, [True] + [False] * 4])


def parameters(layer):
    """name → float64 array, of the parameters and no buffers."""
    return {name: value.numpy().astype(np.float64) for name, value in layer.named_parameters()}


def sentences(rng, site):
    """Queries x [3, 6, C] with their validity, and what they look at with its own: themselves, or across another
    text."""
    x = rng.normal(size=(3, LENGTH, D_MODEL))
    if site.sublayer != "cross":
        return x, VALID, x, VALID
    return x, VALID, rng.normal(size=(3, SOURCE_VALID.shape[1], D_MODEL)), SOURCE_VALID


def positions(length):
    return paddle.arange(length, dtype="int64").unsqueeze(0)


def attend(attention, precision, site, x, x_valid, source, source_valid, encoding=None):
    """One pass as the engine makes it: keys and values of the source, and x looking them up."""
    encoding = PositionalEncoding() if encoding is None else encoding
    here, there = positions(x.shape[1]), positions(source.shape[1])
    x, source, x_valid, source_valid = (precision.tensor(array) for array in (x, source, x_valid, source_valid))
    attention.eval()
    kv = attention.project(source, TokenInfo(encoding, there, source_valid))
    mask = Mask(here, there, source_valid, site.causal, encoding)
    return attention(x, kv, TokenInfo(encoding, here, x_valid), mask, Tap())
