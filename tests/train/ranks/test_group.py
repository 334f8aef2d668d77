"""Sums over ranks beside NumPy's, how ranks meet, and what they say where they cannot."""

import os
import socket
import time

import numpy as np
import paddle
import pytest
from rank_processes import FACTS, ended, forked, team

from paddle_tfm import UserError
from paddle_tfm.train.ranks import meeting
from paddle_tfm.train.ranks.group import INLINE
from paddle_tfm.train.ranks.meeting import Address
from paddle_tfm.train.ranks.member import Member
from paddle_tfm.train.ranks.rank_zero import Ranks

# ---------------------------------------------------------------------------------------------------------------- sums

SIZES = [0, 1, 7, INLINE, INLINE + 13]


def numbers(rank, size):
    return np.random.default_rng([rank, size]).standard_normal(size).astype("float32")


def sums(member, registry):
    """What each rank calls: sums of several sizes, a large array, the values of rank 0."""
    totals = [member.total(numbers(member.rank, size), size) for size in SIZES]
    shaped = member.total(np.full([2, 3], member.rank + 1), 1)
    gradients = paddle.to_tensor(numbers(member.rank, 5000))
    member.reduce(gradients)
    weights = paddle.to_tensor(numbers(member.rank, 5000))
    member.spread(weights)
    return totals, (shaped.shape, shaped), gradients.numpy(), weights.numpy()


def of_rank_0(others, registry):
    assert "PADDLE_TRAINERS_NUM" not in os.environ  # a process that it starts is no rank
    return sums(others, registry)


def checked(member, registry):
    require_numpys(sums(member, registry), member.size)


def require_numpys(outcome, size):
    totals, (shape, shaped), gradients, weights = outcome
    for count, total in zip(SIZES, totals):
        np.testing.assert_array_equal(total, sum(numbers(rank, count).astype("float64") for rank in range(size)))
    assert list(shape) == [2, 3] and (shaped == sum(range(1, size + 1))).all()
    np.testing.assert_allclose(gradients, sum(numbers(rank, 5000) for rank in range(size)), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(weights, numbers(0, 5000))


@pytest.mark.parametrize("size", [2, 3])
def test_sums_are_numpys_in_every_rank(registry, size, capfd):
    with team(registry, size, checked) as rank_0:
        require_numpys(rank_0(of_rank_0), size)
    assert "Error" not in capfd.readouterr().out


def another(member, registry):
    member.total(np.ones(4), 6)


def one(others, registry, number, size):
    others.total(np.ones(size), number)


def end_of_pass(others, registry):
    others.reduce(paddle.ones([5000]))


@pytest.mark.parametrize(
    ("function", "arguments", "came"),
    [
        (one, (5, 4), "sum 5 of 4 numbers came with sum 6 of 4 numbers of rank 1"),
        (one, (6, 3), "sum 6 of 3 numbers came with sum 6 of 4 numbers of rank 1"),
        (one, (6, 5000), "sum 6 of 5,000 numbers came with sum 6 of 4 numbers of rank 1"),
        (end_of_pass, (), "the end of the pass came with sum 6 of 4 numbers of rank 1"),
    ],
)
def test_two_sums_that_are_not_one_are_told_apart(registry, function, arguments, came):
    with team(registry, 2, another) as rank_0, pytest.raises(UserError, match=f"in every rank, but {came}; train this"):
        rank_0(function, *arguments)


# ------------------------------------------------------------------------------------------------------------- meeting


@pytest.mark.parametrize(
    ("size", "theirs", "sentence"),
    [
        (2, [{"version": ["2"]}], r"^rank 1 \(process \d+ on .*\) must have the same version as rank 0; but only it has 2, and only rank 0 has this: give the same command on every machine, but for --node$"),
        (3, [FACTS, FACTS], r"^rank 1 \(.* came twice; give each machine a --node of its own$"),
    ],
)  # fmt: skip
def test_who_is_not_as_rank_0_is_refused_and_all_are_told(size, theirs, sentence, capfd):
    address = Address.free()
    pids = [forked(lambda facts=facts: Member(1, size, address, facts, ended)) for facts in theirs]
    with pytest.raises(UserError, match=sentence) as error:
        Ranks(size, address).meet(FACTS)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [2] * len(theirs)
    assert capfd.readouterr().out.splitlines() == [f"[failed] {error.value}"] * len(theirs)


def test_who_does_not_come_is_named(monkeypatch):
    monkeypatch.setattr(meeting, "WAIT", 0.3)
    with pytest.raises(UserError, match=r"^2 of 3 ranks \(1, 2\) did not come within 0.3 s$"):
        Ranks(3, Address.free()).meet(FACTS)


@pytest.mark.reliability
def test_who_waits_is_told_for_whom(monkeypatch):
    monkeypatch.setattr(meeting, "WAIT", 6.0)
    said = []
    with pytest.raises(UserError):
        Ranks(12, Address.free()).meet(FACTS, said.append)
    assert said == ["Waiting for 11 of 12 ranks (1, 2, 3, 4, 5, 6, 7, 8 …)"]


def test_where_nobody_answers(monkeypatch):
    monkeypatch.setattr(meeting, "WAIT", 0.3)
    address = Address.free()
    with pytest.raises(
        UserError, match=rf"^--address {address}: nobody answers there after 0.3 s \(Connection refused"
    ):
        Member(1, 2, address, FACTS, ended)
    with pytest.raises(UserError, match=r"^--address no\.such\.machine:1: there is no machine of that name"):
        Member(1, 2, Address("no.such.machine", 1), FACTS, ended)


def test_an_address_is_ours_and_free():
    Address.free().require_ours()
    with pytest.raises(UserError, match=r"^--address 192\.0\.2\.1:29500: rank 0 cannot listen there"):
        Address("192.0.2.1", 29500).require_ours()
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = Address("127.0.0.1", server.getsockname()[1])
        with pytest.raises(UserError, match=r"cannot listen there \(Address already in use\)"):
            taken.require_ours()
    for text in ("h", "h:", ":1", "h:0", "h:65536", "h:x", "[::1]:29500"):
        with pytest.raises(UserError, match=r"must be HOST:PORT, a name or IPv4, for instance 10\.0\.0\.1:29500"):
            Address.of(text)


# -------------------------------------------------------------------------------------------------------------- pauses


def messages(member, registry):
    while True:
        message, arrays = member.next()
        os.write(1, f"{message} {arrays['x'].dtype} {arrays['x'].tolist()}\n".encode())


def sending(others, registry, seconds):
    """Rank 0 pauses before the second and the fourth; twice is once."""
    for number in range(4):
        others.send({"number": number}, {"x": np.full([2], number, "int64")})
        if number % 2:
            others.pause()
            others.pause()
            time.sleep(seconds)
    others.close()


def test_others_wait_at_the_store_as_long_as_rank_0_pauses(registry, capfd):
    with team(registry, 3, messages) as rank_0:
        rank_0(sending, 0.2)
    expected = [f"{{'number': {number}}} int64 [{number}, {number}]" for number in range(4)]
    assert sorted(capfd.readouterr().out.splitlines()) == sorted([*expected, "[done] "] * 2)


@pytest.mark.reliability
def test_a_pause_may_be_longer_than_gloo_waits(registry, capfd):
    with team(registry, 2, messages) as rank_0:
        rank_0(sending, 35.0)
    assert len(capfd.readouterr().out.splitlines()) == 5
