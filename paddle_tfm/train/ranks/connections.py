"""The TCP connections that Paddle's engine has in this process: they tell which rank is there."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SILENCE, PROBES = 2, 2  # seconds after which the system asks a silent machine, and between questions; how many may fail


def of_this_process() -> Iterator[socket.socket]:
    """The TCP connections of this process, whoever made them; each is a duplicate, which may be closed."""
    for file in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if str(file.readlink()).startswith("socket:"):
                connection = socket.socket(fileno=os.dup(int(file.name)))
                if connection.type == socket.SOCK_STREAM and connection.family in (socket.AF_INET, socket.AF_INET6):
                    connection.getpeername()  # raises, where it is none
                    yield connection


def inode(connection: socket.socket) -> int:
    """By which two duplicates of one connection are the same."""
    return os.fstat(connection.fileno()).st_ino


def asked_for(connection: socket.socket) -> socket.socket:
    """The connection, whose other end the system asks for: a machine that is gone ends it after some seconds."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, SILENCE),
        (socket.TCP_KEEPINTVL, SILENCE),
        (socket.TCP_KEEPCNT, PROBES),
        (socket.TCP_USER_TIMEOUT, 1000 * SILENCE * (1 + PROBES)),  # where something is under way to it
    ):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    return connection


def use_interface_of(host: str) -> None:
    """Have gloo use the network interface with this address. By default it takes that of the machine's name, which on
    Debian is 127.0.1.1."""
    import fcntl  # Linux's

    wanted = {info[4][0] for info in socket.getaddrinfo(host, None)}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # it has no address
                answer = fcntl.ioctl(any_socket, 0x8915, struct.pack("256s", name.encode()[:15]))  # SIOCGIFADDR
                if socket.inet_ntoa(answer[20:24]) in wanted:
                    os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
                    return
