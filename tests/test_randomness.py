"""Every draw is a function of its key, and of nothing else."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from paddle_tfm.randomness import RandomContext, current_context, digest, generator, random_context


def test_the_same_key_gives_the_same_numbers_however_many_were_drawn_before():
    first = generator(1, "initial", "decoder.0.norm.weight").random(5)
    generator(1, "initial", "encoder.0").random(1000)
    np.random.random(10)
    assert np.array_equal(generator(1, "initial", "decoder.0.norm.weight").random(5), first)


def test_every_part_of_the_key_counts():
    keys = [(1, "initial", "a"), (2, "initial", "a"), (1, "dropout", "a"), (1, "initial", "b"), (1, "initial"), ("a",)]
    assert len({digest(*key) for key in keys}) == len(keys)
    assert len({tuple(generator(*key).random(3)) for key in keys}) == len(keys)


@pytest.mark.parametrize("one, other", [(("ab", "c"), ("a", "bc")), ((1, 23), (12, 3)), (("a", ""), ("a",))])
def test_parts_do_not_run_into_each_other(one, other):
    assert digest(*one) != digest(*other)


def test_the_numbers_are_the_same_in_every_process():
    script = "from paddle_tfm.randomness import *; print(digest(1, 'batches', 0), generator(1, 'x').random())"
    environment = {"PYTHONHASHSEED": "5", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(digest(1, "batches", 0)), str(generator(1, "x").random())]
    assert digest(1, "batches", 0) == 12025356289557103643  # a change here changes every run that was ever made


def test_draws_of_neighbouring_steps_are_uncorrelated():
    draws = np.stack([generator(1, "dropout", "encoder.0", step, 0).random(2000) for step in range(6)])
    correlation = np.corrcoef(draws) - np.eye(6)
    assert np.abs(correlation).max() < 0.1
    assert abs(draws.mean() - 0.5) < 0.02


def test_a_context_holds_within_its_block_and_blocks_nest():
    assert current_context() is None
    with random_context(7, 3):
        assert current_context() == RandomContext(7, 3, 0)
        with random_context(7, 4, 2):
            assert current_context() == RandomContext(7, 4, 2)
        assert current_context() == RandomContext(7, 3, 0)
    assert current_context() is None
