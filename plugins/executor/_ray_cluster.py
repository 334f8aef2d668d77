"""The connection to a cluster of Ray, and how many runs it has room for."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from paddle_tfm.errors import CutShort, UserError
from paddle_tfm.language import _

STORE_BYTES = 80 << 20  # Ray starts no smaller store of objects; nothing goes through it
ANSWER_SECONDS = 10
HEAD_SECONDS = 45  # until a head that does not answer counts as lost: Ray ends the process after 60
INSTALL = 'pip install "ray>=2.50" (in a clone: pip install -e ".[ray]")'


@contextmanager
def connected(address: str | None) -> Iterator[ModuleType]:
    """Ray, connected within this block: as the user's program has it, to the cluster at `address` or RAY_ADDRESS, to
    one that was started on this machine, or to one that is started for this block.

    Raises:
        UserError: why it cannot be.
    """
    if find_spec("ray") is None:
        raise UserError(
            _("the executor `ray` needs the package ray, of the same version on every machine: {install}").format(
                install=INSTALL
            )
        )
    import ray

    if ray.is_initialized():
        yield ray
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        _connect(ray, address or os.environ.get("RAY_ADDRESS", ""))
    finally:  # `ray.init` takes SIGTERM for itself, which asks a sweep to stop
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
    try:
        yield ray
    finally:
        ray.shutdown()


def _connect(ray: ModuleType, address: str) -> None:
    quietly: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    host, _colon, port = address.rpartition(":")
    try:
        if port.isdigit() and "://" not in address:  # Ray itself tries a wrong address for minutes
            socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
        ray.init(address or "auto", **quietly)
    except (OSError, RuntimeError, ValueError) as error:  # its own are ConnectionErrors, which are OSErrors
        if address or not isinstance(error, ConnectionError):
            raise UserError(
                _("no connection to Ray at {address}: {error}").format(
                    address=address or _("this machine"), error=error
                )
            ) from error
        ray.init("local", object_store_memory=STORE_BYTES, include_dashboard=False, **quietly)


def nodes_of(ray: ModuleType) -> list[dict[str, Any]]:
    """`ray.nodes()`. Only the head knows them, so that this is also the question whether it is there: without an answer
    Ray waits for a minute, and then ends the process.

    Raises:
        CutShort: there was none within HEAD_SECONDS.
    """
    answers: list[list[dict[str, Any]]] = []
    reasons = ["it does not answer"]

    def ask() -> None:
        try:
            answers.append(ray.nodes())
        except Exception as error:  # no connection
            reasons.append(" ".join(f"{type(error).__name__}: {error}".split()))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(HEAD_SECONDS)
    if not answers:
        raise CutShort(f"the head of the cluster is lost: {reasons[-1]}")
    return answers[0]


def room(nodes: list[dict[str, Any]], num_cpus: float, num_gpus: float) -> int:
    """How many runs fit on the nodes that `ray.nodes()` lists, each whole on one of them."""
    needs = {name: number for name, number in (("CPU", num_cpus), ("GPU", num_gpus)) if number}
    fits = [
        min(int(node["Resources"].get(name, 0) // number) for name, number in needs.items())
        for node in nodes
        if node["Alive"]
    ]
    return sum(fits)


def too_small(nodes: list[dict[str, Any]], num_cpus: float, num_gpus: float) -> str:
    """That no node has what a run is to have, and what they have."""
    has = [[node["Resources"].get(name, 0) for name in ("CPU", "GPU")] for node in nodes if node["Alive"]]
    listed = ", ".join(f"num_cpus: {cpus:g} and num_gpus: {gpus:g}" for cpus, gpus in sorted(has, reverse=True)[:3])
    return (
        f"no node of the cluster has room for a run with num_cpus: {num_cpus:g} and num_gpus: {num_gpus:g} (the "
        f"largest have {listed}); waiting for one (Ctrl-C ends that)"
    )
