"""Finding plugins: installed packages (entry points in the group `paddle_tfm`) and `--plugin FILE.py`.

A broken plugin stops nothing until somebody asks for what it would have registered; its failure is kept and quoted.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pluggy

from paddle_tfm import hookspecs
from paddle_tfm.errors import UserError, unknown

GROUP = "paddle_tfm"


@dataclass(frozen=True)
class Provider:
    """Who brought a plugin: a distribution and its version, or a file and the hash of its source."""

    plugin: str
    source: str
    version: str


@dataclass
class Plugins:
    """The plugin manager with what is known of each plugin: its provider, or why it failed to load."""

    manager: pluggy.PluginManager
    providers: dict[str, Provider] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    silenced: set[tuple[str, str]] = field(default_factory=set)

    def emit(self, event: str, report: Callable[[str], None], strict: bool = False, **arguments: object) -> None:
        """Call every listener of `event`. One that raises is reported once and switched off (`strict` raises)."""
        for implementation in getattr(self.manager.hook, event).get_hookimpls():
            key = (implementation.plugin_name, event)
            if key in self.silenced:
                continue
            try:
                implementation.function(*(arguments[name] for name in implementation.argnames))
            except Exception as error:
                if strict:
                    raise
                self.silenced.add(key)
                report(
                    f"listener '{key[0]}' failed in {event} and is switched off: {type(error).__name__}: {error}; "
                    "training goes on"
                )


def create_plugins(files: Iterable[str | Path] = ()) -> Plugins:
    """A manager with all installed plugins and those of `files`.

    Raises:
        UserError: a file that was named cannot be loaded (an installed plugin that fails is only remembered).
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    plugins = Plugins(manager)
    for entry in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
        _guarded(plugins, entry)
    for file in files:
        _load_file(plugins, Path(file))
    return plugins


def _guarded(plugins: Plugins, entry: importlib.metadata.EntryPoint) -> None:
    try:
        _register(plugins, entry.load(), Provider(entry.name, entry.dist.name, entry.dist.version))
    except Exception as error:
        plugins.failures[entry.name] = f"{type(error).__name__}: {error}"


def _load_file(plugins: Plugins, path: Path) -> None:
    if not path.is_file():
        raise UserError(f"--plugin {path}: no such file")
    source = path.read_bytes()
    name = f"paddle_tfm_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"--plugin {path}: not a Python file; its name should end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        version = "sha256:" + hashlib.sha256(source).hexdigest()[:16]
        _register(plugins, module, Provider(path.stem, str(path), version))
    except UserError:
        raise
    except Exception as error:
        line = _line_in(error, str(path))
        raise UserError(f"--plugin {path}{line}: {type(error).__name__}: {error}") from error


def _line_in(error: BaseException, path: str) -> str:
    trace, line = error.__traceback__, getattr(error, "lineno", None)
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f", line {line}" if line else ""


def _register(plugins: Plugins, plugin: object, provider: Provider) -> None:
    manager = plugins.manager
    manager.register(plugin, name=provider.plugin)
    hooks = {name for name in vars(hookspecs) if name.startswith(("register_", "on_"))}
    for caller in manager.get_hookcallers(plugin) or []:
        if caller.name not in hooks:
            # A misspelt hook would be ignored in silence: pluggy looks only for the names that it knows.
            manager.unregister(plugin)
            raise UserError(f"plugin '{provider.plugin}': {unknown('hook', caller.name, hooks)}")
    plugins.providers[provider.plugin] = provider
