"""What the kit calls another process: hashes of texts that are others, whatever the chance of this process."""

import sys

from paddle_tfm.testing.other_process import as_in_another_process

TEXTS = [f"text {number}" for number in range(2_000)]


def hashes():
    return [hash(text) for text in TEXTS]


def test_no_remainder_by_a_small_number_agrees_by_chance():
    here = hashes()
    with as_in_another_process():
        there = hashes()
        again = hashes()
        pair, number = hash(("seed", 3)), hash(3)
    assert there == again and hashes() == here
    for divisor in (*range(2, 41), 64, 100, 1000, 4096):
        assert all(one % divisor != other % divisor for one, other in zip(here, there)), divisor
    assert pair != hash(("seed", 3)) and number == 3
    assert all(abs(each) <= sys.maxsize for each in there)
