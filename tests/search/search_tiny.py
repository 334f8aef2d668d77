"""Sentences for models over six tokens, small enough that all outputs can be written down."""

from paddle_tfm.data.codec import Encoded
from paddle_tfm.data.vocabulary import EOS, UNKNOWN
from paddle_tfm.protocols import Example

WORDS = (UNKNOWN, 4, 5)  # all that an output can be made of, of a vocabulary of 6
LONGEST = 4
SOURCES = ([4, 5, 4, 4], [5, 4], [4])


def encoded(source, extra=(), copy=None):
    """A source of ids, with nothing known of its target."""
    return Encoded(Example("", ""), [*source, EOS], [*(copy or source), EOS], [EOS], [EOS], tuple(extra))
