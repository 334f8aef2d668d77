"""The conformance kit: whether a component is right, ours or yours.

Example::

    from paddle_tfm.testing import examine

    report = examine("norm", "layer")
    print(report.failures)

In a test module of your own, with the pytest plugin that comes with paddle_tfm::

    @pytest.mark.conformance(component=MyNorm)
    def test_my_norm(conformance_check):
        conformance_check()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paddle_tfm import runtime
from paddle_tfm.components import Entry
from paddle_tfm.errors import UserError
from paddle_tfm.hookspecs import LISTENER
from paddle_tfm.plugins import Provider, create_plugins
from paddle_tfm.registry import Registry
from paddle_tfm.testing.report import EXPECTED_FAILURE, FAIL, INFO, PASS, SKIP, Check, Outcome, Report

__all__ = [
    "EXPECTED_FAILURE",
    "FAIL",
    "INFO",
    "PASS",
    "SKIP",
    "Check",
    "Outcome",
    "Report",
    "checks",
    "examine",
    "installed",
    "with_class",
]


def checks(kind: str) -> list[Check]:
    """All checks of a kind, in the order in which they are shown; empty for kinds that have none."""
    from paddle_tfm.testing.catalogue import CHECKS

    return CHECKS.get(kind, [])


def with_class(registry: Registry, cls: type[Any]) -> tuple[str, str]:
    """Add a class that nobody registered; returns its kind and name."""
    name = cls.__name__
    registry.add(Entry(cls.kind, name, cls, Provider(name, cls.__module__, "")))
    return cls.kind, name


def examine(
    kind: str,
    name: str,
    options: Mapping[str, object] | None = None,
    registry: Registry | None = None,
    only: frozenset[str] = frozenset(),
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
) -> Report:
    """Run the checks of a component, or of a listener: then `name` is that of its plugin, as `ls plugins` shows it.

    Args:
        options: what a recipe would set. registry: where its name is known; default: all installed plugins. only:
            names of checks; empty: all. on_outcome: called with each outcome as it comes.
    Raises:
        UserError: there is no such component, or it cannot be built at any site.
    """
    registry = registry or installed()
    if kind == LISTENER:
        from paddle_tfm.testing.kinds.listener import Listener

        if options:
            raise UserError(f"listener {name}: a listener has no options")
        return Report(kind, name, run_checks(Listener(registry.plugins, name), only, on_outcome))
    from paddle_tfm.testing.models.component_under_test import ComponentUnderTest

    subject = ComponentUnderTest(registry, kind, name, options)
    notes = [f"not at {site}: {sentence}" for site, sentence in subject.refusals.items()]
    return Report(kind, name, run_checks(subject, only, on_outcome), tuple(notes))


def run_checks(subject, only: frozenset[str], on_outcome: Callable[[Outcome], None]) -> tuple[Outcome, ...]:
    """The outcomes of all checks of a subject's kind, or of `only` these; none after a decisive one that fails."""
    from paddle_tfm import processes

    outcomes = []
    # On one thread: models of checks are small, so that a second would wait in a loop; and some compare bits.
    with processes.share_of_threads(runtime.threads()):
        for check in checks(subject.kind):
            if not only or check.name in only:
                outcomes.append(check.run(subject))
                on_outcome(outcomes[-1])
                if check.decisive and outcomes[-1].status == FAIL:
                    break
    return tuple(outcomes)


def installed() -> Registry:
    """All that installed plugins register, a registry of its own."""
    runtime.load_paddle()
    return Registry(create_plugins())
