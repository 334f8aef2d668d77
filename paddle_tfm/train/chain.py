"""Ranks in a row, each connected with the one before it and the one behind it by TCP: sums to rank 0, values from it.

    sums:    rank N-1 → … → 1 → 0, each adds its own numbers to those that come
    values:  rank 0 → 1 → … → N-1

Both in pieces, so that all connections are busy at once: with G bytes, bandwidth W and a latency t of one piece, each
takes G / W + (N - 2) t, as long for many ranks as for two, and each rank sends and receives G. That is what a ring
takes for its sum (Patarasuk & Yuan 2009, doi:10.1016/j.jpdc.2008.09.002), up to the factor (N - 1) / N. The order of
the sums is always the same, and with it their last bits.

Nothing that comes is executed: messages are JSON and numbers. A rank that ends closes its connections, which the
system tells its neighbours at once.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from paddle_tfm.errors import UserError

PIECE = 1 << 18  # bytes that are passed on at once
MOST = 1 << 24  # bytes of a message without its arrays
SILENCE, PROBES = 2, 3  # seconds after which the system asks a silent peer, and between questions; how many may fail
_HEAD = struct.Struct("!Q")
_CALL = struct.Struct("!qQ")  # which sum, and its bytes
Message = dict[str, Any]


class Broken(Exception):
    """A connection has ended. `before`: whether it is that to the rank before this one."""

    def __init__(self, before: bool, reason: object = "it was closed"):
        super().__init__(f"{reason}")
        self.before = before


def watched(connection: socket.socket) -> socket.socket:
    """The connection, whose other end the system asks for: if nothing is under way on it, a machine that is gone ends
    it after some seconds."""
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in {"TCP_KEEPIDLE": SILENCE, "TCP_KEEPINTVL": SILENCE, "TCP_KEEPCNT": PROBES}.items():
        if hasattr(socket, name):  # not every system has all of them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return connection


def receive(connection: socket.socket, view: memoryview) -> None:
    """Fill `view`.

    Raises:
        OSError: the connection has ended.
    """
    while len(view):
        count = connection.recv_into(view)
        if not count:
            raise ConnectionResetError("it was closed")
        view = view[count:]


def send_message(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """Send a message of JSON. Raises OSError: the connection has ended."""
    text = json.dumps(message).encode()
    connection.sendall(_HEAD.pack(len(text)) + text)


def receive_message(connection: socket.socket) -> Message:
    """The next message of JSON.

    Raises:
        OSError: the connection has ended. ValueError: what comes is none.
    """
    head = bytearray(_HEAD.size)
    receive(connection, memoryview(head))
    (size,) = _HEAD.unpack(head)
    if size > MOST:
        raise ValueError(f"a message must have at most {MOST:,} bytes, but has {size:,}")
    text = bytearray(size)
    receive(connection, memoryview(text))
    message = json.loads(text)
    if not isinstance(message, dict):
        raise ValueError("a message must be a mapping")
    return message


class Chain:
    """The place of one rank in the row.

    Args:
        before, behind: its connections with its neighbours; None at the ends.
    """

    def __init__(self, before: socket.socket | None, behind: socket.socket | None):
        self.before, self.behind = before, behind

    def close(self) -> None:
        """End both connections."""
        for connection in (self.before, self.behind):
            if connection is not None:
                connection.close()

    def interrupt(self) -> None:
        """From another thread: whatever is under way raises Broken."""
        for connection in (self.before, self.behind):
            with suppress(OSError):
                if connection is not None:
                    connection.shutdown(socket.SHUT_RDWR)

    # ------------------------------------------------------------------------------------------------ values, from 0

    def send(self, message: Mapping[str, Any], arrays: Sequence[np.ndarray] = ()) -> None:
        """From rank 0: a message and arrays to all others. Raises Broken."""
        if self.behind is None:
            return
        forms = [[array.dtype.str, list(array.shape)] for array in arrays]
        try:
            send_message(self.behind, {**message, "arrays": forms})
            for array in arrays:
                self.behind.sendall(_bytes(array))
        except OSError as error:
            raise Broken(False, error) from None

    def next(self) -> tuple[Message, list[np.ndarray]]:
        """In another rank: the next message and its arrays, which are passed on. Raises Broken."""
        message = self._passed_on()
        arrays = [np.empty(shape, np.dtype(kind)) for kind, shape in message.pop("arrays")]
        for array in arrays:
            self.spread(array)
        return message, arrays

    def _passed_on(self) -> Message:
        try:
            message = receive_message(_there(self.before))
        except (OSError, ValueError) as error:
            raise Broken(True, error) from None
        try:
            if self.behind is not None:
                send_message(self.behind, message)
        except OSError as error:
            raise Broken(False, error) from None
        return message

    def spread(self, array: np.ndarray) -> None:
        """Set `array` to that of rank 0. Raises Broken."""
        for piece in _pieces(_bytes(array)):
            self._come(self.before, piece, before=True)
            self._go(self.behind, piece, before=False)

    # -------------------------------------------------------------------------------------------------- sums, to 0

    def reduce(self, array: np.ndarray) -> None:
        """Set `array` [n] to the sum of its own and those of all ranks behind this one, in rank 0 of all ranks. Raises
        Broken."""
        raw, added = _bytes(array), np.empty(max(1, PIECE // array.itemsize), array.dtype)
        step = len(added)
        for first in range(0, len(array), step):
            own = array[first : first + step]
            if self.behind is not None:
                self._come(self.behind, _bytes(added[: len(own)]), before=False)
                own += added[: len(own)]
            self._go(self.before, raw[first * array.itemsize : (first + len(own)) * array.itemsize], before=True)

    def total(self, array: np.ndarray, number: int) -> np.ndarray:
        """The sum of an array over all ranks, the same in each.

        Args:
            number: which sum it is.
        Raises:
            Broken: a connection has ended. UserError: another rank takes another sum.
        """
        values = np.array(array).reshape(-1)  # a copy
        own = _CALL.pack(number, values.nbytes)
        if self.behind is not None:
            theirs = bytearray(_CALL.size)
            self._come(self.behind, memoryview(theirs), before=False)
            if theirs != own:
                raise UserError(
                    "`sum_over_ranks` must be called in one order and with one shape in every rank, but sum "
                    f"{_CALL.unpack(own)[0]} came with sum {_CALL.unpack(theirs)[0]} of another rank; train this model "
                    "with one process"
                )
        self._go(self.before, memoryview(own), before=True)
        self.reduce(values)
        self.spread(values)
        return values.reshape(array.shape)

    # ------------------------------------------------------------------------------------------------------------------

    def _come(self, connection: socket.socket | None, view: memoryview, before: bool) -> None:
        if connection is not None:
            try:
                receive(connection, view)
            except OSError as error:
                raise Broken(before, error) from None

    def _go(self, connection: socket.socket | None, view: memoryview, before: bool) -> None:
        if connection is not None:
            try:
                connection.sendall(view)
            except OSError as error:
                raise Broken(before, error) from None


def _there(connection: socket.socket | None) -> socket.socket:
    if connection is None:
        raise ConnectionResetError("rank 0 has no rank before it")
    return connection


def _bytes(array: np.ndarray) -> memoryview:
    """The memory of an array that lies in one piece."""
    return array.reshape(-1).view(np.uint8).data


def _pieces(view: memoryview) -> list[memoryview]:
    return [view[first : first + PIECE] for first in range(0, len(view), PIECE)]
