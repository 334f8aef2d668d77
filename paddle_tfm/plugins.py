"""Loading plugins: installed packages (entry points in the group `paddle_tfm`) and `--plugin FILE.py`.

A broken plugin stops nothing until somebody asks for what it would have registered; then its failure is quoted.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pluggy

from paddle_tfm import hookspecs
from paddle_tfm.errors import UserError, nearest, unknown
from paddle_tfm.hookspecs import KINDS
from paddle_tfm.language import _
from paddle_tfm.plugin_errors import ENTRY_POINTS, FILE_MODULE

# What the engine registers itself, as a plugin does: it comes with every installation, whatever its entry points.
OWN = {"section": "paddle_tfm.comparison.report.sections"}
HASH = "sha256:"  # begins the version of a file
HOOKS = frozenset(name for name in vars(hookspecs) if name.startswith(("register_", "on_")))


@dataclass(frozen=True)
class Provider:
    """Who brought a plugin: a distribution and its version, or a file and the hash of its source. package: the one in
    which it registers its components."""

    plugin: str
    source: str
    version: str
    package: str = ""

    @property
    def is_file(self) -> bool:
        """Whether it came by `--plugin`."""
        return self.version.startswith(HASH)

    @property
    def identity(self) -> str:
        """The plugin and its version."""
        return f"{self.plugin} {self.version}".strip()

    @property
    def is_ours(self) -> bool:
        """Whether paddle_tfm itself brought it."""
        return self.source == "paddle-tfm"


@dataclass
class Plugins:
    """The plugin manager with what is known of each plugin: its provider, or why it failed to load."""

    manager: pluggy.PluginManager
    providers: dict[str, Provider] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


@dataclass
class Listeners:
    """The listeners of one run. One that raises is reported once, and its hook is switched off until the run ends.

    Args:
        report: gets a sentence on one that is switched off. strict: raise instead.
    """

    plugins: Plugins
    report: Callable[[str], None]
    strict: bool = False
    silenced: set[tuple[str, str]] = field(default_factory=set, init=False)

    def emit(self, event: str, **arguments: object) -> None:
        """Call every listener of `event`."""
        for implementation in getattr(self.plugins.manager.hook, event).get_hookimpls():
            key = (implementation.plugin_name, event)
            if key in self.silenced:
                continue
            try:
                implementation.function(*(arguments[name] for name in implementation.argnames))
            except Exception as error:
                if self.strict:
                    raise
                self.silenced.add(key)
                self.report(
                    f"listener '{key[0]}' failed in {event} and is switched off: {type(error).__name__}: {error}; "
                    "training continues"
                )


def listeners(plugins: Plugins) -> dict[str, list[str]]:
    """Plugin → its hooks that listen, of all that have any."""
    hooks = {name: [hook for hook in hooks_of(plugins, name) if hook.startswith("on_")] for name in plugins.providers}
    return {name: events for name, events in hooks.items() if events}


def hooks_of(plugins: Plugins, name: str) -> list[str]:
    """What a plugin implements."""
    callers = plugins.manager.get_hookcallers(plugins.manager.get_plugin(name)) or []
    return sorted(caller.name for caller in callers)


def create_plugins(files: Iterable[str | Path] = ()) -> Plugins:
    """A manager with all installed plugins and those of `files`.

    Raises:
        UserError: a file in `files` cannot be loaded (an installed plugin that fails is only put into `failures`).
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    plugins = Plugins(manager)
    for name, module in OWN.items():
        version = importlib.metadata.version("paddle-tfm")
        _register(plugins, importlib.import_module(module), Provider(name, "paddle-tfm", version))
    for entry in sorted(importlib.metadata.entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        _guarded(plugins, entry)
    for file in dict.fromkeys(map(Path, files)):
        load_file(plugins, file)
    return plugins


def _guarded(plugins: Plugins, entry: importlib.metadata.EntryPoint) -> None:
    try:
        _register(plugins, entry.load(), _provider(entry))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, or pytest's of a skipped module
        plugins.failures[entry.name] = _one_line(error)


def _provider(entry: importlib.metadata.EntryPoint) -> Provider:
    name, version = (entry.dist.name, entry.dist.version) if entry.dist else ("unknown", "")
    return Provider(entry.name, name, version, entry.module.partition(".")[0])


def source_hash(source: bytes) -> str:
    """`sha256:…` of a source."""
    return HASH + hashlib.sha256(source).hexdigest()[:16]


def load_file(plugins: Plugins, path: Path) -> None:
    """Add the plugin in a file.

    Raises:
        UserError: there is no such file, it cannot be imported, or it registers nothing.
    """
    if not path.is_file():
        raise UserError(_("--plugin {path}: no such file").format(path=path))
    source = path.read_bytes()
    name = f"{FILE_MODULE}{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise UserError(_("--plugin {path}: not a Python file; its name should end in .py").format(path=path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # `requires` names a plugin by its file's stem, unless an installed plugin or another file has that name already.
    names = (path.stem, path.name, str(path))
    provider = Provider(
        next(name for name in names if not plugins.manager.has_plugin(name)), str(path), source_hash(source)
    )
    try:
        # What was hashed: byte code beside the file may be older than its time and size say.
        exec(compile(source, spec.origin or str(path), "exec", dont_inherit=True), module.__dict__)
        _register(plugins, module, provider)
        if not plugins.manager.get_hookcallers(module):
            raise UserError(_registers_nothing(module))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, or pytest's of a skipped module
        raise UserError(f"--plugin {path}{_line_in(error, spec.origin)}: {_one_line(error)}") from error


def _registers_nothing(module: ModuleType) -> str:
    """Why a file that was named as a plugin is none: what looks like a hook, or what could be registered."""
    for name, function in inspect.getmembers(module, inspect.isfunction):
        own = function.__module__ == module.__name__
        if own and (name in HOOKS or (name.startswith(("register_", "on_")) and nearest(name, sorted(HOOKS)))):
            line = function.__code__.co_firstlineno
            return f"registers nothing: is `@hookimpl` missing above `def {name}` (line {line})?"
    sentence = "registers nothing: it has no function marked with `@hookimpl`"
    for name, value in vars(module).items():
        hook = KINDS.get(str(getattr(value, "kind", "")))
        if isinstance(value, type) and value.__module__ == module.__name__ and hook is not None:
            return f'{sentence}. For instance: @hookimpl def {hook}(): return {{"{name.lower()}": {name}}}'
    return f"{sentence}; `paddle-tfm plugin new` writes an example"


def _one_line(error: BaseException) -> str:
    """The error as one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"


def _line_in(error: BaseException, path: str | None) -> str:
    trace = error.__traceback__
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == path else None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f", line {line}" if line else ""


def _register(plugins: Plugins, plugin: object, provider: Provider) -> None:
    manager = plugins.manager
    manager.register(plugin, name=provider.plugin)
    for caller in manager.get_hookcallers(plugin) or []:
        if caller.name not in HOOKS:  # pluggy would keep it, and never call it
            manager.unregister(plugin)
            text = _("plugin '{plugin}': {sentence}")
            raise UserError(text.format(plugin=provider.plugin, sentence=unknown("hook", caller.name, HOOKS)))
    plugins.providers[provider.plugin] = provider
