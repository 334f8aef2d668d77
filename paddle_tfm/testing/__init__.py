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

from collections.abc import Callable, Iterator, Mapping

from paddle_tfm import runtime
from paddle_tfm.components import Entry
from paddle_tfm.plugins import Provider, create_plugins
from paddle_tfm.registry import Registry
from paddle_tfm.testing.report import CHECKS, FAIL, INFO, LIMIT, PASS, SKIP, Check, Outcome, Report

__all__ = [
    "FAIL",
    "INFO",
    "LIMIT",
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
    from paddle_tfm.testing import attention, feed_forward, head, laws, norm, others, placement, position, whole  # noqa: F401

    return CHECKS.get(kind, [])


def with_class(registry: Registry, cls: type, name: str | None = None) -> tuple[str, str]:
    """Add a class that nobody registered; returns its kind and name."""
    name = name or cls.__name__
    registry.add(Entry(cls.kind, name, cls, Provider(name, cls.__module__, "")))
    return cls.kind, name


def examine(
    kind: str,
    name: str,
    options: Mapping[str, object] | None = None,
    registry: Registry | None = None,
    only: frozenset[str] = frozenset(),
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> Report:
    """Run the checks of a component.

    Args:
        options: what a recipe would set. registry: where it is found; default: all installed plugins. only: names of
            checks; empty: all. tell: called with each outcome as it comes.
    Raises:
        UserError: there is no such component, or it cannot be built at any site.
    """
    from paddle_tfm.testing.subject import Subject

    subject = Subject(registry or installed(), kind, name, options)
    found = list(_outcomes(subject, only, tell))
    return Report(kind, name, tuple(found), tuple(_notes(subject)))


def _outcomes(subject, only: frozenset[str], tell: Callable[[Outcome], None]) -> Iterator[Outcome]:
    for each in checks(subject.kind):
        if not only or each.name in only:
            outcome = each.run(subject)
            tell(outcome)
            yield outcome
            if each.name == "runs" and outcome.status == FAIL:
                return


def _notes(subject) -> Iterator[str]:
    for site, sentence in subject.refusals.items():
        yield f"not at {site}: {sentence}"


def installed() -> Registry:
    """All that installed plugins register, a registry of its own."""
    runtime.load_paddle()
    return Registry(create_plugins())
