"""Whose code an exception comes from: a sentence that names a plugin, its line and the shapes that it had in hand."""

from __future__ import annotations

import importlib.metadata
import linecache
import os
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from paddle_tfm.errors import UserError
from paddle_tfm.language import _

FILE_MODULE = "paddle_tfm_file_"  # the module of a `--plugin` file is called so, and then as the file
ENTRY_POINTS = "paddle_tfm"  # the group through which installed packages bring plugins
TRACEBACK = "PADDLE_TFM_TRACEBACK"  # set: no sentence, but the whole traceback
SHOW_ALL = f"\n  {TRACEBACK}=1 shows the whole traceback"
OURS = ("paddle_tfm", "paddle_tfm_plugins")
# A line of the list in which Paddle quotes where a backward pass in Python was: `/path/file.py(12): backward`
_QUOTED = re.compile(r"^\s*(?P<file>.+\.py)\((?P<line>\d+)\): (?P<function>\w+)\s*$", re.MULTILINE)
# What Paddle's sentences end with: which of its C++ comparisons did not hold, and in which of its files
_NOT_FOR_USERS = re.compile(
    r"\s*\[Hint: Expected.*?\](?=\s*(\(at |$))|\s*\(at /?paddle/[^)]*\)|\s*\[operator <.*?error\]", re.DOTALL
)


class PluginError(UserError):
    """An exception of a plugin's code. `cls`: the class of the component, if it is known; it does not travel between
    processes."""

    cls: type | None = None


def of_plugin(error: BaseException) -> PluginError | None:
    """The error as one of a plugin: which class, file and line, what was raised, and the shapes of its arguments. None
    if no code of a plugin has part in it, or the user wants tracebacks (`TRACEBACK`).

    The innermost call of a plugin's method counts, also where the call itself is wrong (a `forward` that takes fewer
    arguments) or what the method called is not its own.
    """
    if os.environ.get(TRACEBACK):
        return None
    modules = _plugin_modules()
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if _is_plugins(frame, modules)]
    if not frames:
        return _quoted(error, modules)
    frame, line = frames[-1]
    component = next((owner for frame, _ in reversed(frames) if (owner := _owner(frame, modules)) is not None), None)
    own = [(frame, line) for frame, line in frames if _top(frame.f_globals.get("__name__")) in modules]
    where = _short(str(getattr(sys.modules.get(type(component).__module__), "__file__", "") or "in Python"))
    if own:
        frame, line = own[-1]
        where = f"{_short(frame.f_code.co_filename)} line {line}, in {frame.f_code.co_name}"
        if code := linecache.getline(frame.f_code.co_filename, line).strip():
            where += f": `{code}`"
    sentence = f"{_title(component)} failed ({where}): {summary(error)}"
    if shapes := _shapes(frame):
        sentence += f"\n  its arguments there: {shapes}"
    plugin_error = PluginError(sentence + SHOW_ALL)
    plugin_error.cls = None if component is None else type(component)
    return plugin_error


def summary(error: BaseException) -> str:
    """Type and sentence of an error on one line, without what Paddle adds for those who develop it. A layer that lacks
    what `nn.Layer` makes in its constructor is told so: Paddle names one of its own attributes."""
    if isinstance(error, AttributeError) and (paddle := sys.modules.get("paddle")) is not None:
        if isinstance(error.obj, paddle.nn.Layer) and error.name in vars(paddle.nn.Layer()):
            return _("the constructor of {name} must call `super().__init__()` first").format(
                name=type(error.obj).__name__
            )
    text = " ".join(_NOT_FOR_USERS.sub("", str(error)).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _plugin_modules() -> set[str]:
    """The top-level modules of installed plugins that are not ours, and the prefix of those of files."""
    entries = importlib.metadata.entry_points(group=ENTRY_POINTS)
    return {FILE_MODULE, *(_top(entry.module) for entry in entries)} - set(OURS)


def _top(module: object) -> str:
    name = str(module)
    return FILE_MODULE if name.startswith(FILE_MODULE) else name.partition(".")[0]


def _owner(frame: FrameType, modules: set[str]) -> object | None:
    """The plugin's object whose method a frame runs."""
    owner = frame.f_locals.get("self")
    return owner if _top(type(owner).__module__) in modules else None


def _is_plugins(frame: FrameType, modules: set[str]) -> bool:
    return _top(frame.f_globals.get("__name__")) in modules or _owner(frame, modules) is not None


def _title(component: object | None) -> str:
    """For instance `norm MyNorm`."""
    if component is None:
        return "a plugin"
    kind = getattr(type(component), "kind", None)
    name = type(component).__name__
    return f"{kind} {name}" if isinstance(kind, str) else name


def _short(file: str) -> str:
    """A path relative to where the user is, if it lies below."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file


def _shapes(frame: FrameType) -> str:
    """The arguments of the call with the shapes of tensors: `x float32 [2, 5, 64], mask None`."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & 0x04:  # *arguments, as in the `__call__` of a layer
        names = (*names, code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
    described = (f"{name} {text}" for name in names if name != "self" and (text := _describe(frame.f_locals.get(name))))
    return ", ".join(described)


def _describe(value: object) -> str:
    if isinstance(value, tuple) and value:
        return f"({', '.join(_describe(item) or type(item).__name__ for item in value)})"
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None:
        return f"{str(dtype).removeprefix('paddle.')} {list(shape)}"
    return repr(value) if value is None or isinstance(value, (bool, int, float)) else ""


def _quoted(error: BaseException, modules: set[str]) -> PluginError | None:
    """An error that Paddle quotes as text: it was raised within a backward pass in Python."""
    places = list(_QUOTED.finditer(str(error)))
    files = dict(_files(modules))
    for place in places:
        if name := files.get(place["file"]):
            lines = [line.strip() for line in str(error).splitlines()]
            first = next((line for line in lines if re.match(r"[A-Z]\w+(Error|Exception)\b", line)), summary(error))
            short = _short(place["file"])
            where = f"{short} line {place['line']}, in {place['function']}"
            return PluginError(f"plugin {name} failed ({where}): {first}{SHOW_ALL}")
    return None


def _files(modules: set[str]) -> Iterator[tuple[str, str]]:
    for name, module in list(sys.modules.items()):
        if _top(name) in modules and (file := getattr(module, "__file__", None)):
            yield file, Path(file).stem if name.startswith(FILE_MODULE) else name
