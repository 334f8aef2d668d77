"""`paddle-tfm doctor`: what is wrong with the installation, and how to mend it."""

from __future__ import annotations

import platform
import sys
import time

import click

from paddle_tfm.cli.common import console, create_registry, plugin_option
from paddle_tfm.errors import UserError

SIZE = 1024
SLOW = 0.5  # below this share of NumPy's rate, Paddle's BLAS is on a slow path


class Report:
    """Lines with a mark each; remembers whether anything is broken."""

    def __init__(self) -> None:
        self.broken = False

    def say(self, mark: str, what: str, message: str) -> None:
        """mark: ok | note | bad."""
        from rich.markup import escape

        self.broken |= mark == "bad"
        colour = {"ok": "green", "note": "yellow", "bad": "red"}[mark]
        console().print(f"[{colour}]{mark:<4}[/]  {what:<10}  {escape(message)}")


@click.command(name="doctor")
@plugin_option
def command(plugins) -> None:
    """Look at Python, Paddle, the device, threads, BLAS and plugins; say what is wrong and how to mend it.

    \b
    Example:
      paddle-tfm doctor
    """
    report = Report()
    report.say("ok", "python", f"{platform.python_version()} ({sys.executable})")
    paddle = _paddle(report)
    _settings(report)
    if paddle is not None:
        _device(report, paddle)
        _blas(report, paddle)
    _plugins(report, plugins)
    if report.broken:
        raise click.exceptions.Exit(1)


def _paddle(report: Report):
    from paddle_tfm.runtime import load_paddle

    try:
        paddle = load_paddle()
    except UserError as error:
        report.say("bad", "paddle", str(error))
        return None
    except ImportError as error:
        report.say(
            "bad", "paddle", f"is installed but cannot be imported: {error}. Install it anew, in a fresh environment"
        )
        return None
    built = "for GPUs" if paddle.is_compiled_with_cuda() else "for CPUs"
    report.say("ok", "paddle", f"{paddle.__version__}, built {built}")
    return paddle


def _settings(report: Report) -> None:
    from paddle_tfm import runtime

    for setting in runtime.SETTINGS:
        if setting.value is None:
            continue
        by = "yours" if setting.by_user else "set by paddle_tfm"
        report.say("ok", "setting", f"{setting.name}={setting.value} ({by}): {setting.reason}")
    if runtime.too_late:
        report.say(
            "bad", "setting", "paddle was imported before paddle_tfm: none of this counts; import paddle_tfm first"
        )


def _device(report: Report, paddle) -> None:
    gpus = paddle.device.cuda.device_count() if paddle.is_compiled_with_cuda() else 0
    for i in range(gpus):
        report.say("ok", "device", f"gpu:{i} {paddle.device.cuda.get_device_name(i)}")
    if paddle.is_compiled_with_cuda() and not gpus:
        report.say(
            "note",
            "device",
            "Paddle is built for GPUs but finds none: is the NVIDIA driver installed? Computing on the CPU",
        )
    elif not gpus:
        from paddle_tfm.runtime import INSTALL_HELP

        report.say("ok", "device", f"cpu. {INSTALL_HELP.split('. ', 1)[1]}")
        from paddle_tfm import processes

        if (number := processes.available_workers()) > 1:
            message = f"a training step and a search are shared among up to {number}, of one thread each"
            report.say("ok", "processes", f"{message} (OMP_NUM_THREADS=1: among none)")


def _blas(report: Report, paddle) -> None:
    import numpy as np

    paddle.set_device("cpu")
    array = np.random.default_rng(1).standard_normal((SIZE, SIZE)).astype(np.float32)
    tensor = paddle.to_tensor(array)
    ours, theirs = _rate(lambda: (tensor @ tensor).numpy()), _rate(lambda: array @ array)
    message = f"matrix products at {ours:.0f} GFLOP/s in Paddle, {theirs:.0f} in NumPy ({SIZE}², float32)"
    if ours < SLOW * theirs:
        threads = next(setting.value for setting in _runtime_settings() if setting.name == "OMP_NUM_THREADS")
        report.say("note", "blas", f"{message}: slow. OMP_NUM_THREADS is {threads}; unset it to use every core")
    else:
        report.say("ok", "blas", message)


def _runtime_settings():
    from paddle_tfm import runtime

    return runtime.SETTINGS


def _rate(product, repeats: int = 7) -> float:
    """GFLOP/s, the median of some."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        product()
        times.append(time.perf_counter() - began)
    return 2 * SIZE**3 / sorted(times)[repeats // 2] / 1e9


def _plugins(report: Report, files) -> None:
    registry = create_registry(files)
    for name, provider in registry.plugins.providers.items():
        count = sum(entry.provider.plugin == name for entry in registry)
        report.say("ok", "plugin", f"{name} ({provider.source} {provider.version}): {count} components")
    for name, failure in registry.plugins.failures.items():
        report.say("bad", "plugin", f"{name} failed to load: {failure}. Mend or uninstall it; everything else works")
    for sentence in registry.conflicts.values():
        report.say("bad", "plugin", sentence)
