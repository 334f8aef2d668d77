"""What each validator lets pass, and the sentence with which it refuses."""

from __future__ import annotations

import math

import pytest

from paddle_tfm.validators import ascending, at_least, between, divides, matrix_side, not_negative, one_of, positive

NAN = math.nan


@pytest.mark.parametrize(
    "check",
    [
        lambda: positive(eps=1e-9, base=3, later=None),
        lambda: not_negative(warmup=0, floor=0.5, later=None),
        lambda: at_least(2, length=2, width=7.5, later=None),
        lambda: matrix_side(head_dim=1, hidden=65_536, latent=None),
        lambda: between("[0, 1)", low=0, high=0.999, later=None),
        lambda: between("(0, 1]", low=1e-9, high=1, later=None),
        lambda: between("[0, inf)", low=0, high=1e300),
        lambda: one_of(["dense", "random"], mode="random", other="dense", later=None),
        lambda: ascending(floor=0.0, middle=0.0, peak=1.0),
        lambda: divides(kv_heads=2, num_heads=4, d_model=64),
        lambda: positive(),
    ],
)
def test_what_holds_passes(check):
    assert check() is None


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda: positive(eps=0), "`eps` must be positive, but is 0"),
        (lambda: positive(eps=1, base=-2.5), "`base` must be positive, but is -2.5"),
        (lambda: positive(eps=NAN), "`eps` must be positive, but is nan"),
        (lambda: not_negative(warmup=-1), "`warmup` must not be negative, but is -1"),
        (lambda: not_negative(warmup=NAN), "`warmup` must not be negative, but is nan"),
        (lambda: at_least(2, length=1), "`length` must be at least 2, but is 1"),
        (lambda: at_least(1, width=NAN), "`width` must be at least 1, but is nan"),
        (lambda: matrix_side(head_dim=0), "`head_dim` must be at least 1, but is 0"),
        (lambda: matrix_side(latent=8, head_dim=65_537), "`head_dim` must be at most 65536, but is 65537"),
        (lambda: between("[0, 1)", rate=1), "`rate` must be in [0, 1), but is 1"),
        (lambda: between("[0, 1)", rate=-0.1), "`rate` must be in [0, 1), but is -0.1"),
        (lambda: between("(0, 1]", top_p=0), "`top_p` must be in (0, 1], but is 0"),
        (lambda: between("(0, 1]", top_p=1.1), "`top_p` must be in (0, 1], but is 1.1"),
        (lambda: between("[0, inf)", ratio=math.inf), "`ratio` must be in [0, inf), but is inf"),
        (lambda: between("[0, 1]", decay=NAN), "`decay` must be in [0, 1], but is nan"),
        (lambda: one_of(["dense", "random"], mode="rand"), "`mode` must be one of dense, random, but is 'rand'; did you mean 'random'?"),
        (lambda: one_of(["a"], mode="zzz"), "`mode` must be one of a, but is 'zzz'"),
        (lambda: ascending(floor=3, peak=2), "`floor` must not be above `peak`, but 3 is above 2"),
        (lambda: ascending(a=1, b=2, c=0), "`b` must not be above `c`, but 2 is above 0"),
        (lambda: divides(num_heads=7, d_model=256), "`num_heads` must divide `d_model`, but 7 does not divide 256"),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_refused_by_a_sentence(check, sentence):
    with pytest.raises(ValueError) as error:
        check()
    assert str(error.value) == sentence
