"""How the ranks of a run meet.

Rank 0 listens at an address. Every other rank connects to it and says who it is; rank 0 compares what it says with its
own, and tells it where the rank before it in the row listens (`chain.py`).
"""

from __future__ import annotations

import os
import platform
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from paddle_tfm.errors import UserError
from paddle_tfm.train.chain import Chain, Message, receive_message, send_message, watched
from paddle_tfm.train.members import FAILED, Ended, Member, Ranks
from paddle_tfm.units import whole_number

Facts = Mapping[str, Sequence[str]]
WAIT = 300.0  # seconds until all have met
PAUSE = 0.2  # between two tries to connect


@dataclass(frozen=True)
class Address:
    """Where rank 0 listens."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> Address:
        """HOST:PORT. Raises UserError: it is no such thing."""
        host, _, port = text.rpartition(":")
        number = whole_number(port, 1, 65535)
        if not host or number is None:
            raise UserError(f"--address {text}: must look like HOST:PORT, for instance 10.0.0.1:29500")
        return cls(host.strip("[]"), number)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def listen(address: Address) -> socket.socket:
    """Whoever connects from now on waits until rank 0 is ready.

    Raises:
        UserError: this machine does not have that address, or its port is in use.
    """
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((address.host, address.port), family=family, backlog=1024)
    except OSError as error:
        raise UserError(
            f"--address {address}: rank 0 cannot listen there ({error.strerror or error}); it must be an address of "
            "the machine with --node 0, and a port that is free"
        ) from None


def meet(
    listener: socket.socket,
    facts: Facts,
    size: int,
    report: Callable[[str], None] = lambda text: None,
    check: Callable[[], None] = lambda: None,
) -> Ranks:
    """In rank 0: wait for all others, and connect them in a row.

    Args:
        facts: what every rank must have alike, values by name. report: gets a sentence on who is waited for.
        check: called while they are waited for; it may raise.
    Raises:
        UserError: one has other facts; all are told. Or some did not come in time.
    """
    there: dict[int, tuple[socket.socket, Message]] = {}
    try:
        for connection, hello in _arrivals(listener, size, there, report, check):
            there[hello["rank"]] = connection, hello
            _require_alike(hello, facts, size)
        for rank, (connection, _) in there.items():
            before = there[rank - 1][1] if rank > 1 else None
            send_message(connection, {"before": before and [before["peer"], before["port"]]})
        chain = Chain(None, _behind(listener) if size > 1 else None)
    except BaseException as error:
        for connection, _ in there.values():
            with suppress(OSError):
                send_message(connection, {"ended": FAILED, "sentence": str(error)})
            connection.close()
        raise
    finally:
        listener.close()
    hosts = {rank: f"process {hello.get('pid')} on {hello.get('host')}" for rank, (_, hello) in there.items()}
    return Ranks(size, chain, {rank: connection for rank, (connection, _) in there.items()}, hosts)


def _arrivals(
    listener: socket.socket,
    size: int,
    there: Mapping[int, Any],
    report: Callable[[str], None],
    check: Callable[[], None],
) -> Iterator[tuple[socket.socket, Message]]:
    """Who comes, until all ranks are `there`. Raises UserError: some did not come in time, or one came twice."""
    end, said = time.monotonic() + WAIT, time.monotonic() + 5.0
    while missing := [rank for rank in range(1, size) if rank not in there]:
        check()
        now = time.monotonic()
        if now > end:
            raise UserError(f"{len(missing)} of {size} ranks did not come within {WAIT:g} s: {_listed(missing)}")
        if now > said:
            report(f"Waiting for {len(missing)} of {size} ranks: {_listed(missing)}")
            said = end
        listener.settimeout(min(1.0, max(0.01, end - now)))
        with suppress(TimeoutError):
            connection, peer = listener.accept()
            hello = _hello(connection)
            if hello is None:  # somebody else
                connection.close()
                continue
            if hello["rank"] in there:
                twice = f"{_name(hello)} came twice; give each machine a --node of its own"
                with suppress(OSError):
                    send_message(connection, {"ended": FAILED, "sentence": twice})
                raise UserError(twice)
            yield watched(connection), {**hello, "peer": peer[0]}


def _hello(connection: socket.socket) -> Message | None:
    """What a rank says of itself; None if it is none."""
    connection.settimeout(10.0)
    try:
        hello = receive_message(connection)
        return {**hello, "rank": int(hello["rank"]), "port": int(hello["port"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _require_alike(hello: Message, facts: Facts, size: int) -> None:
    """Raises UserError: a rank is not what it should be."""
    said = hello.get("facts")
    theirs = said if isinstance(said, dict) else {}
    for name, own in facts.items():
        other = [str(each) for each in theirs.get(name) or []]
        if other != own:
            here, there = ([each for each in one if each not in two] for one, two in ((own, other), (other, own)))
            raise UserError(
                f"{_name(hello)} must have the same {name} as rank 0; but only it has {_and(there)}, and only rank 0 "
                f"has {_and(here)}: give the same command on every machine, but for --node"
            )
    if not 0 < hello["rank"] < size:
        raise UserError(f"{_name(hello)} is none of {size}")


def _name(hello: Message) -> str:
    return f"rank {hello['rank']} (process {hello.get('pid')} on {hello.get('host')})"


def _and(values: Sequence[str]) -> str:
    return " and ".join(values) or "nothing"


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:8])) + (" …" if len(ranks) > 8 else "")


def _behind(listener: socket.socket) -> socket.socket:
    """The connection of the rank behind this one."""
    listener.settimeout(30.0)
    while True:
        connection, _ = listener.accept()
        connection.settimeout(10.0)
        try:
            if receive_message(connection).get("link"):
                return watched(connection)
        except (OSError, ValueError):
            pass
        connection.close()


def join(address: Address, rank: int, size: int, facts: Facts) -> Member:
    """In another rank: meet the others.

    Raises:
        Ended: rank 0 refused it, or another. UserError: nobody answers, or rank 0 has ended.
    """
    connection = watched(_connected(address))
    listener = socket.create_server((connection.getsockname()[0], 0), family=connection.family, backlog=8)
    try:
        hello = {"rank": rank, "port": listener.getsockname()[1], "facts": dict(facts)}
        try:
            send_message(connection, {**hello, "host": platform.node(), "pid": os.getpid()})
            said = receive_message(connection)
        except (OSError, ValueError) as error:
            raise UserError(
                f"rank 0 ({address}) ended before the training began ({error}); its output says why"
            ) from None
        if "ended" in said:
            raise Ended(said["ended"], said["sentence"])
        where = said["before"] or [address.host, address.port]
        before = watched(_connected(Address(*where)))
        send_message(before, {"link": rank})
        return Member(
            rank, size, str(address), connection, Chain(before, _behind(listener) if rank < size - 1 else None)
        )
    finally:
        listener.close()


def _connected(address: Address) -> socket.socket:
    end = time.monotonic() + WAIT
    while True:
        try:
            return socket.create_connection((address.host, address.port), timeout=10.0)
        except socket.gaierror as error:
            raise UserError(f"--address {address}: there is no machine of that name ({error.strerror})") from None
        except OSError as error:
            if time.monotonic() > end:
                raise UserError(
                    f"--address {address}: nobody answers there after {WAIT:g} s ({error.strerror or error}); start "
                    "the command with --node 0 on that machine, and let its port through the firewall"
                ) from None
            time.sleep(PAUSE)
