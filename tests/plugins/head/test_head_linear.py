"""The plain output matrix."""

from paddle_tfm_plugins.head.linear import LinearHead


def test_it_cannot_say_words_of_the_source():
    assert not LinearHead.extends_vocabulary
