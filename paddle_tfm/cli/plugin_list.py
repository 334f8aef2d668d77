"""What each plugin registers, what failed to load and why, and names that two of them claim."""

from __future__ import annotations

from paddle_tfm.cli.common import console
from paddle_tfm.cli.tables import emit
from paddle_tfm.plugins import listeners
from paddle_tfm.registry import Registry
from paddle_tfm.tabular import Table, column


def print_plugins(registry: Registry, form: str | None = None) -> None:
    """A row a plugin, then failures and conflicts; as JSON those are rows of the same list."""
    from rich.markup import escape

    rows, events = [], listeners(registry.plugins)
    for name, provider in registry.plugins.providers.items():
        entries = [entry for entry in registry if entry.provider.plugin == name]
        registers = [*(f"{entry.kind}:{entry.name}" for entry in entries), *events.get(name, [])]
        source = f"{provider.source} {provider.version}"
        rows.append({"plugin": name, "from": source, "registers": registers, "failure": None})
    failures = registry.plugins.failures
    if form is not None:
        rows += [{"plugin": name, "from": None, "registers": [], "failure": text} for name, text in failures.items()]
    columns = [
        column("plugin", style="cyan"),
        column("from", importance=50),
        column("registers", text=", ".join, prose=True),
        column("failure", importance=1),
    ]
    emit(Table(columns if form else columns[:-1], rows, "Plugins"), form)
    if form is not None:
        return
    for name, failure in failures.items():
        console().print(f"[red]{escape(name)} failed to load:[/] {escape(failure)}")
    for sentence in registry.conflicts.values():
        console().print(f"[red]{escape(sentence)}[/]")
