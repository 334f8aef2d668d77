"""Where the ranks of a run meet, and what each must be to take part."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paddle_tfm import paddle_compat
from paddle_tfm.errors import UserError
from paddle_tfm.language import _, enumerated
from paddle_tfm.units import whole_number

WAIT = 300.0  # seconds until all have met
PAUSE = 0.2  # between two tries
Facts = Mapping[str, Sequence[str]]
Message = dict[str, Any]


@dataclass(frozen=True)
class Address:
    """Where rank 0 keeps the store."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> Address:
        """HOST:PORT. Raises UserError: it is no such thing."""
        host, _colon, port = text.rpartition(":")
        number = whole_number(port, 1, 65535)
        if not host or ":" in host or number is None:
            raise UserError(
                _("--address {text}: must be HOST:PORT, a name or IPv4, for instance 10.0.0.1:29500").format(text=text)
            )
        return cls(host, number)

    @classmethod
    def free(cls, host: str = "127.0.0.1") -> Address:
        """A port of this machine that nobody uses."""
        with socket.create_server((host, 0)) as server:
            return cls(host, server.getsockname()[1])

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def require_ours(self) -> None:
        """Raises UserError: this machine does not have that address, or its port is in use."""
        try:
            family = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0][0]
            socket.create_server((self.host, self.port), family=family).close()
        except OSError as error:
            raise UserError(
                _(
                    "--address {address}: rank 0 cannot listen there ({reason}); it must be an address of the machine "
                    "with --node 0, and a port that is free"
                ).format(address=self, reason=_reason(error))
            ) from None

    def require_answer(self) -> str:
        """Wait until rank 0 is there; this machine's address on the way to it. Raises UserError: nobody answers."""
        end = time.monotonic() + WAIT
        while True:
            try:
                with socket.create_connection((self.host, self.port), timeout=10.0) as connection:
                    return connection.getsockname()[0]
            except socket.gaierror as error:
                raise UserError(
                    _("--address {address}: there is no machine of that name ({reason})").format(
                        address=self, reason=error.strerror
                    )
                ) from None
            except OSError as error:
                if time.monotonic() > end:
                    raise UserError(
                        _(
                            "--address {address}: nobody answers there after {seconds:g} s ({reason}); start the "
                            "command with --node 0 on that machine, and let its port through the firewall"
                        ).format(address=self, seconds=WAIT, reason=_reason(error))
                    ) from None
                time.sleep(PAUSE)

    def store(self, keeper: bool = False) -> Any:
        """A connection with the store; `keeper`: and the store itself."""
        return paddle_compat.tcp_store(self.host, self.port, keeper)


def _reason(error: OSError) -> str:
    """Without the address, which Python adds."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else f"{error.strerror or error}"


def require_alike(hello: Message, facts: Facts) -> None:
    """Raises UserError: a rank is not what it should be."""
    for name, own in facts.items():
        other = hello["facts"].get(name) or []
        if other != list(own):
            here, there = ([each for each in one if each not in two] for one, two in ((own, other), (other, own)))
            raise UserError(
                _(
                    "{process} must have the same {name} as rank 0; but only it has {there}, and only rank 0 has "
                    "{here}: give the same command on every machine, but for --node"
                ).format(
                    process=name_of(hello),
                    name=name,
                    there=enumerated(there or [_("nothing")]),
                    here=enumerated(here or [_("nothing")]),
                )
            )


def name_of(hello: Message) -> str:
    text = _("rank {rank} (process {pid} on {host})")
    return text.format(rank=hello["rank"], pid=hello["pid"], host=hello["host"])


def listed(ranks: Sequence[int], size: int) -> str:
    shown = f"{', '.join(map(str, ranks[:8]))}{' …' if len(ranks) > 8 else ''}"
    return _("{number} of {size} ranks ({shown})").format(number=len(ranks), size=size, shown=shown)
