"""Sums and values in a row of ranks; how ranks meet, and what they say where they cannot."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from rank_processes import free_address

from paddle_tfm import UserError
from paddle_tfm.train import meeting
from paddle_tfm.train.chain import MOST, PIECE, Broken, Chain, receive_message
from paddle_tfm.train.meeting import Address, join, listen, meet
from paddle_tfm.train.members import DONE, Ended

FACTS = {"version": ["1"], "recipe": ["reverse", "train.steps=5"]}


def chains(size):
    links = [socket.socketpair() for _ in range(size - 1)]
    befores, behinds = [None, *(link[1] for link in links)], [*(link[0] for link in links), None]
    return [Chain(before, behind) for before, behind in zip(befores, behinds)]


def together(functions):
    """What each returns, called at once."""
    with ThreadPoolExecutor(len(functions)) as pool:
        return [future.result(timeout=20) for future in [pool.submit(function) for function in functions]]


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, PIECE // 4, PIECE + 13])
def test_sums_are_numpys_and_values_those_of_rank_0(size, count, rng):
    arrays = rng.standard_normal((size, count)).astype("float32")
    expected = arrays[-1].copy()
    for array in arrays[-2::-1]:
        expected = array + expected
    row, reduced = chains(size), arrays.copy()
    together([lambda chain=chain, own=own: chain.reduce(own) for chain, own in zip(row, reduced)])
    np.testing.assert_array_equal(reduced[0], expected)
    totals = together([lambda chain=chain, own=own: chain.total(own, 7) for chain, own in zip(row, arrays)])
    for total in totals:
        np.testing.assert_array_equal(total, expected)
    others = [chain.next for chain in row[1:]]
    sent = [arrays[0], rng.integers(0, 9, (2, 3)), np.array(True)]
    _, *got = together([lambda: row[0].send({"do": "this"}, sent), *others])
    for message, values in got:
        assert message == {"do": "this"}
        for value, own in zip(values, sent, strict=True):
            assert value.dtype == own.dtype
            np.testing.assert_array_equal(value, own)


@pytest.mark.parametrize(("number", "count"), [(8, 3), (7, 4)])
def test_two_sums_in_another_order_are_no_sum(number, count):
    first, second = chains(2)

    def send():
        with pytest.raises(Broken):
            second.total(np.zeros(count), number)

    sender = threading.Thread(target=send)
    sender.start()
    with pytest.raises(UserError, match=rf"in one order and with one shape .* sum 7 came with sum {number} of another"):
        first.total(np.zeros(3), 7)
    first.close()
    sender.join(timeout=20)


def test_an_end_is_seen_on_both_sides_and_another_thread_can_make_one():
    first, second, third = chains(3)
    second.close()
    with pytest.raises(Broken) as left:
        first.reduce(np.zeros(3, "float32"))
    assert not left.value.before
    with pytest.raises(Broken) as left:
        third.next()
    assert left.value.before
    first, second = chains(2)
    threading.Timer(0.2, second.interrupt).start()
    with pytest.raises(Broken):
        second.next()


@pytest.mark.parametrize(
    "raw", [(MOST + 1).to_bytes(8, "big"), (2).to_bytes(8, "big") + b"[]", (1).to_bytes(8, "big") + b"{"]
)
def test_what_is_no_message_is_refused(raw):
    one, other = socket.socketpair()
    one.sendall(raw)
    with pytest.raises(ValueError):
        receive_message(other)


# ---------------------------------------------------------------------------------------------------------- they meet


@pytest.mark.parametrize("size", [2, 4])
def test_ranks_meet_in_any_order_and_pass_by_a_stranger(size):
    address = free_address()
    listener = listen(address)
    with socket.create_connection((address.host, address.port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(9))
        functions = [lambda rank=rank: join(address, rank, size, FACTS) for rank in range(size - 1, 0, -1)]
        ranks, *members = together([lambda: meet(listener, FACTS, size), *functions])
    values = [np.full(3, float(member.rank)) for member in members]
    totals = together(
        [
            lambda: ranks.total(np.zeros(3), 1),
            *(lambda member=member, value=value: member.total(value, 1) for member, value in zip(members, values)),
        ]
    )
    assert all(total.tolist() == [size * (size - 1) / 2] * 3 for total in totals)
    ranks.close(DONE)
    for member in members:
        with pytest.raises(Ended) as end:
            member.next()
        assert end.value.how == DONE
        member.close()


def failed(first, others, size=2):
    """What `meet` with `first` facts raises, and what each of the others got, by (rank, facts)."""
    address = free_address()
    listener = listen(address)

    def other(rank, facts):
        try:
            return join(address, rank, size, facts)
        except (UserError, Ended) as error:
            return str(error)

    def zero():
        with pytest.raises(UserError) as error:
            meet(listener, first, size)
        return str(error.value)

    return together([zero, *(lambda each=each: other(*each) for each in others)])


def test_another_recipe_is_refused_and_both_say_in_what():
    said, heard = failed(FACTS, [(1, {**FACTS, "recipe": ["reverse", "train.steps=7"]})])
    assert said == heard
    assert (
        "must have the same recipe as rank 0; but only it has train.steps=7, and only rank 0 has train.steps=5" in said
    )


def test_a_rank_that_comes_twice_or_is_none_is_refused():
    said, *heard = failed(FACTS, [(1, FACTS), (1, FACTS)], 3)
    assert "rank 1 " in said and "came twice; give each machine a --node of its own" in said
    assert heard == [said, said]
    said, heard = failed(FACTS, [(5, FACTS)])
    assert said == heard and said.endswith("is none of 2")


def test_who_does_not_come_is_named(monkeypatch):
    monkeypatch.setattr(meeting, "WAIT", 0.3)
    said, _ = failed(FACTS, [(2, FACTS)], 3)
    assert said == "1 of 3 ranks did not come within 0.3 s: 1"
    with pytest.raises(UserError, match=r"nobody answers there after 0\.3 s .* start the command with --node 0"):
        join(free_address(), 1, 2, FACTS)


def test_addresses():
    assert str(Address.of("10.0.0.1:29500")) == "10.0.0.1:29500" and Address.of("[::1]:80") == Address("::1", 80)
    for text in ("10.0.0.1", ":29500", "host:0", "host:70000", "host:x"):
        with pytest.raises(UserError, match=r"must look like HOST:PORT, for instance 10\.0\.0\.1:29500"):
            Address.of(text)
    with pytest.raises(UserError, match="there is no machine of that name"):
        join(Address("no-such-machine.invalid", 29500), 1, 2, FACTS)
    with pytest.raises(UserError, match="rank 0 cannot listen there"):
        listen(Address("192.0.2.1", 29500))  # nobody's (RFC 5737)
