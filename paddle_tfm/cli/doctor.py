"""`paddle-tfm doctor`: the problems of an installation and their solutions."""

from __future__ import annotations

import platform
import sys
import time

import click

from paddle_tfm.cli.common import console, create_registry, plugin_option
from paddle_tfm.errors import UserError
from paddle_tfm.language import _, counted

SIZE = 1024  # of the matrices whose product is timed
MIN_RATE_RATIO = 0.5  # to NumPy's rate; below it, Paddle's BLAS takes a slow path


class Report:
    """Prints one line for each check, with a mark; `broken` is True after a bad one."""

    def __init__(self, width: int = 10) -> None:
        self.broken, self.width = False, width

    def add(self, mark: str, subject: str, message: str) -> None:
        """Print a line. mark: ok | note | bad."""
        from rich.markup import escape

        self.broken |= mark == "bad"
        colour = {"ok": "green", "note": "yellow", "bad": "red"}[mark]
        console().print(f"[{colour}]{mark:<4}[/]  {subject:<{self.width}}  {escape(message)}", soft_wrap=True)


@click.command(name="doctor")
@plugin_option
def command(plugins) -> None:
    """Check Python, Paddle, the device, threads, BLAS and plugins; report each problem and its solution.

    \b
    Example:
      paddle-tfm doctor
    """
    report = Report()
    report.add("ok", "python", f"{platform.python_version()} ({sys.executable})")
    paddle = _paddle(report)
    _settings(report)
    if paddle is not None:
        _device(report, paddle)
        _blas(report)
        _products(report)
    _plugins(report, plugins)
    if report.broken:
        raise click.exceptions.Exit(1)


def _paddle(report: Report):
    from paddle_tfm.runtime import load_paddle

    try:
        paddle = load_paddle()
    except UserError as error:
        report.add("bad", "paddle", str(error))
        return None
    except ImportError as error:
        text = _("is installed but cannot be imported: {error}. Install it again, in a new environment")
        report.add("bad", "paddle", text.format(error=error))
        return None
    text = _("{version}, built for GPUs") if paddle.is_compiled_with_cuda() else _("{version}, built for CPUs")
    report.add("ok", "paddle", text.format(version=paddle.__version__))
    return paddle


def _settings(report: Report) -> None:
    from paddle_tfm import runtime

    for setting in runtime.SETTINGS:
        if setting.value is None:
            continue
        text = _("{setting} (yours): {reason}") if setting.by_user else _("{setting} (set by paddle_tfm): {reason}")
        value = f"{setting.name}={setting.value}"
        report.add("ok", "setting", text.format(setting=value, reason=_(setting.reason)))
    if runtime.too_late:
        text = _("paddle was imported before paddle_tfm: these settings have no effect; import paddle_tfm first")
        report.add("bad", "setting", text)


def _device(report: Report, paddle) -> None:
    gpus = paddle.device.cuda.device_count() if paddle.is_compiled_with_cuda() else 0
    for i in range(gpus):
        report.add("ok", "device", f"gpu:{i} {paddle.device.cuda.get_device_name(i)}")
    if paddle.is_compiled_with_cuda() and not gpus:
        text = _("Paddle is built for GPUs but detects none: is the NVIDIA driver installed? The CPU is used")
        report.add("note", "device", text)
    elif not gpus:
        from paddle_tfm import processes
        from paddle_tfm.runtime import FOR_GPUS

        report.add("ok", "device", f"cpu{_('. ')}{_(FOR_GPUS)}")
        if (number := processes.available_workers()) > 1:
            text = _(
                "a training step and a search are divided among up to {number} processes of one thread "
                "(OMP_NUM_THREADS=1: one process)"
            )
            report.add("ok", "processes", text.format(number=number))


def _blas(report: Report) -> None:
    """The rate of the BLAS path in use beside NumPy's, and whether its products are right."""
    import numpy as np
    import paddle

    from paddle_tfm import blas, runtime

    array = np.random.default_rng(1).standard_normal((SIZE, SIZE)).astype(np.float32)
    tensor = paddle.to_tensor(array, place=paddle.CPUPlace())
    numpys, rate, deviation = _rate(lambda: array @ array), _rate(lambda: (tensor @ tensor).numpy()), blas.deviation()
    path = blas.path_in_use()
    said = _("path '{path}': {rate:.0f} GFLOP/s, in NumPy {numpys:.0f} ({size}², float32)")
    said = said.format(path=path, rate=rate, numpys=numpys, size=SIZE)
    if deviation > blas.TOLERANCE:
        others = [f"{blas.VARIABLE}={blas.PATHS[each]}" for each in blas.Processor.read().paths if each != path]
        solution = _("; set {settings}").format(settings=_(" or ").join(others)) if others else ""
        text = _("{said}, but its products are wrong by {deviation:.1g}{solution}")
        report.add("bad", "blas", text.format(said=said, deviation=deviation, solution=solution))
        return
    text = _("{said}; largest error {deviation:.0e} of float64's")
    report.add("ok", "blas", text.format(said=said, deviation=deviation))
    if rate < MIN_RATE_RATIO * numpys:
        text = _("slow beside NumPy. OMP_NUM_THREADS is {threads}; unset it to use every core")
        report.add("note", "blas", text.format(threads=runtime.threads()))


def _products(report: Report) -> None:
    """The rate of the products of a training step, in float32 and in bfloat16."""
    import numpy as np

    from paddle_tfm.kernels.cpu import products
    from paddle_tfm.kernels.cpu.gemm import gemm, rounded

    array, out = np.random.default_rng(1).standard_normal((2, SIZE, SIZE)).astype(np.float32)
    for kind in products.KINDS:
        if reason := products.why_not(kind):
            text = _("in {kind}: by Paddle in float32, as {reason}")
            report.add("note", "products", text.format(kind=kind, reason=reason))
            continue
        factor = rounded(array) if kind == "bfloat16" else array
        rate = _rate(lambda factor=factor: gemm(factor, factor, out))
        text = _("in {products}: {rate:.0f} GFLOP/s in a training step (train.products: {kind})")
        report.add("ok", "products", text.format(products=products.description(kind), rate=rate, kind=kind))


def _rate(product, repeats: int = 7) -> float:
    """GFLOP/s of `product`, a call that multiplies two SIZE × SIZE matrices: the median of `repeats`."""
    times = []
    for _repeat in range(repeats):
        start = time.perf_counter()
        product()
        times.append(time.perf_counter() - start)
    return 2 * SIZE**3 / sorted(times)[repeats // 2] / 1e9


def _plugins(report: Report, files) -> None:
    registry = create_registry(files)
    text = _("{plugins} with {components}: paddle-tfm ls plugins")
    plugins, components = counted(len(registry.plugins.providers), "plugin"), counted(len(list(registry)), "component")
    report.add("ok", "plugins", text.format(plugins=plugins, components=components))
    for name, failure in registry.plugins.failures.items():
        text = _("{name} failed to load: {failure}. Repair or uninstall it; everything else works")
        report.add("bad", "plugins", text.format(name=name, failure=failure))
    for sentence in registry.conflicts.values():
        report.add("bad", "plugins", sentence)
