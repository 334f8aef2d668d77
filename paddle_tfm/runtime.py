"""Settings that Paddle needs before its import, and the import without its start-up messages.

Each setting has an effect only before Paddle's libraries load, and none overrides what the user has set; with
PADDLE_TFM_KEEP_ENVIRONMENT=1 nothing is set at all. `SETTINGS` is the table that `paddle-tfm doctor` prints;
docs/performance.md says how much time each saves.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import io
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from paddle_tfm import blas
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.plugin_errors import summary
from paddle_tfm.units import whole_number

TESTED_PADDLE = "3.3"
FOR_CPUS = 'For a CPU: pip install paddlepaddle==3.3.1 (in a clone: pip install -e ".[cpu]").'
FOR_GPUS = (
    "For an NVIDIA GPU: pip install paddlepaddle-gpu==3.3.1 -i https://www.paddlepaddle.org.cn/packages/stable/cu126/ "
    "(PyPI's paddlepaddle-gpu stops at 2.6.2, which is too old)."
)
THREADS = "OMP_NUM_THREADS"
KEEP_ENVIRONMENT = "PADDLE_TFM_KEEP_ENVIRONMENT"
_HEAP, _HUGE_PAGE, _MADV_HUGEPAGE = 2 << 30, 2 << 20, 14
_MALLOC = {"M_TRIM_THRESHOLD": (-1, -1), "M_TOP_PAD": (-2, 256 << 20), "M_MMAP_MAX": (-4, 0)}


@dataclass(frozen=True)
class Setting:
    """An environment variable: its value (None: not needed on this machine), the reason, and whether the user set
    it."""

    name: str
    value: str | None
    reason: str
    by_user: bool = False


SETTINGS: list[Setting] = []
too_late = False
_loaded = False  # whether `load_paddle` came to its end: who imports Paddle himself has not asked what it asks


def physical_cores() -> int:
    """Cores that this process may run on, hyper-threads counted once."""
    try:
        allowed = sorted(os.sched_getaffinity(0))
        siblings = {Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list").read_text() for cpu in allowed}
        return max(1, min(len(siblings), len(allowed)))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def keeps_environment() -> bool:
    """Whether nothing may be set: the user has set PADDLE_TFM_KEEP_ENVIRONMENT to a value other than 0."""
    return os.environ.get(KEEP_ENVIRONMENT, "") not in ("", "0")


def prepare() -> None:
    """Make the settings that speed up Paddle on this machine. Called when `paddle_tfm` is imported; later calls do
    nothing."""
    global too_late
    if SETTINGS:
        return
    keep = keeps_environment()
    if not os.environ.get(THREADS):
        os.environ.pop(THREADS, None)  # empty is not set
    too_late = "paddle" in sys.modules and not keep
    settings = [
        Setting(THREADS, str(physical_cores()), "Paddle uses one thread by default"),
        Setting(
            blas.VARIABLE,
            blas.Processor.read().setting,
            "Paddle's BLAS takes a slow path by default on processors that are not Intel's",
        ),
        Setting("FLAGS_use_stride_kernel", "0", "a transpose is a fast copy, without slow strided reads later"),
        Setting("GLOG_minloglevel", "2", "no log lines of Paddle on standard error"),
    ]
    for each in settings:
        by_user = keep or each.name in os.environ
        value = os.environ.get(each.name, None if keep else each.value)
        SETTINGS.append(replace(each, value=value, by_user=by_user))
        if each.value is not None and not by_user and not too_late:
            os.environ[each.name] = each.value
    if not keep and not any(name.startswith("MALLOC_") for name in os.environ):
        _keep_freed_memory()
    if too_late and any(not setting.by_user and setting.value for setting in SETTINGS[:3]):
        warnings.warn(
            "paddle was imported before paddle_tfm, so its threads and BLAS have their defaults, up to 3 times slower "
            "on a CPU; import paddle_tfm first",
            stacklevel=3,
        )


def users_environment() -> dict[str, str]:
    """The environment variables without those that `prepare` added in this process: what a process on another machine,
    or of another library, should begin with."""
    added = {setting.name for setting in SETTINGS if not setting.by_user or too_late}
    return {name: value for name, value in os.environ.items() if name not in added}


def python() -> list[str]:
    """The command of this Python, after which comes a program or a module. It imports nothing from the current folder,
    where a `json.py` may lie beside somebody else's runs; Python 3.10 has no such option."""
    return [sys.executable, *(["-P"] if sys.version_info >= (3, 11) else [])]


def threads() -> int:
    """The number of threads that Paddle uses, or will use, in this process; of several, `4,2`, those of nested loops
    do not count."""
    number = whole_number(os.environ.get(THREADS, "").partition(",")[0].strip(), 1, 4_096)
    return number or (1 if keeps_environment() else physical_cores())


@contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Within this block an environment variable has this value, for the processes that are started there."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def threads_for(workers: int) -> AbstractContextManager[None]:
    """Within this block, each of `workers` processes that are started has an equal part of the threads."""
    return variable(THREADS, str(max(1, threads() // workers)))


def _keep_freed_memory() -> None:
    """Let glibc keep freed memory for the next step instead of returning it to the system page by page."""
    try:
        libc = ctypes.CDLL(None)
        mallopt = libc.mallopt
    except (AttributeError, OSError, TypeError):
        return  # not glibc
    for option, value in _MALLOC.values():
        mallopt(option, value)
    SETTINGS.append(
        Setting("mallopt", "keep", "glibc keeps freed memory, so that activations cause no page faults in each step")
    )
    if _use_huge_pages(libc):
        SETTINGS.append(Setting("madvise", "huge pages", "the system need not look up so many small ones"))


def return_freed_memory() -> None:
    """Give the pages of freed memory back to the system, which glibc keeps (see above): after what is done once and
    takes more than a step does."""
    with suppress(AttributeError, OSError, TypeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def _use_huge_pages(libc: ctypes.CDLL) -> bool:
    """Have the first gigabytes of the heap lie in pages of 2 MiB, where the system gives them to those who ask: the
    tensors of a step are on thousands of pages of 4 KiB, more than the processor remembers. Nothing is touched here."""
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes, libc.madvise.argtypes = [ctypes.c_void_p], [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    start = libc.malloc(_HEAP)  # grows the heap, which is kept when this is freed
    if not start:
        return False
    libc.free(start)
    first, last = -(-start // _HUGE_PAGE) * _HUGE_PAGE, (start + _HEAP) // _HUGE_PAGE * _HUGE_PAGE
    return libc.madvise(first, last - first, _MADV_HUGEPAGE) == 0


def installed_paddle() -> tuple[str, str] | None:
    """(distribution, version) of the installed Paddle, without importing it; None where there is none."""
    for name in ("paddlepaddle-gpu", "paddlepaddle"):
        try:
            return name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def load_paddle():
    """Import Paddle with these settings and without its start-up messages; the first time, ask whether it is right.

    Raises:
        UserError: Paddle is not installed, has a version that paddle_tfm was not tested with, or does not start.
    """
    global _loaded
    prepare()
    if _loaded:
        return sys.modules["paddle"]
    installed = installed_paddle()
    if installed is None:
        raise UserError(f"{_('PaddlePaddle is not installed.')} {_(FOR_CPUS)} {_(FOR_GPUS)}")
    if not installed[1].startswith(f"{TESTED_PADDLE}."):
        text = _("{name} {version} is installed, but paddle_tfm needs Paddle {tested}.x (tested with 3.3.1).")
        text = text.format(name=installed[0], version=installed[1], tested=TESTED_PADDLE)
        raise UserError(f"{text} {_(FOR_CPUS)} {_(FOR_GPUS)}")
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            import paddle

            from paddle_tfm import paddle_compat
        paddle_compat.keep_python_signal_handlers()
        _require_right_products()
    except ValueError as error:  # of an environment variable that it reads
        names = sorted(name for name in users_environment() if re.match("FLAGS_|PADDLE_(?!TFM_)", name))
        variables = f"; set in the environment: {', '.join(names)}" if names else ""
        text = _("Paddle does not start: {error}{variables}")
        raise UserError(text.format(error=summary(error), variables=variables)) from error
    _loaded = True
    return paddle


def _require_right_products() -> None:
    """Refuse to compute with a path of the BLAS that we chose and that this processor gets wrong.

    Raises:
        UserError: it does.
    """
    chosen = next((each for each in SETTINGS if each.name == blas.VARIABLE), None)
    if chosen is None or chosen.value is None or chosen.by_user or too_late:
        return
    if (error := blas.deviation()) > blas.TOLERANCE:
        narrower = next((value for value in blas.PATHS.values() if value < chosen.value), "0")
        text = _(
            "with {variable}={value}, which paddle_tfm sets on this processor, Paddle's matrix products are wrong "
            "by {error:.1g}; set {variable}={narrower} before you start, and please report it with the output of "
            "`paddle-tfm doctor`"
        )
        raise UserError(text.format(variable=blas.VARIABLE, value=chosen.value, error=error, narrower=narrower))
