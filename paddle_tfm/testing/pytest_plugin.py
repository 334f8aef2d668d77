"""The conformance kit as a pytest plugin: a test for every check, of a class of yours.

Example::

    @pytest.mark.conformance(component=MyNorm, eps=1e-3)
    def test_my_norm(law):
        law()

`-m conformance` chooses these tests. The mark's other arguments are the component's options; `way="attention"` (norm,
position, encoder-decoder) checks an ordinary layer as it is.
"""

from __future__ import annotations

import pytest

MARK = "conformance(component=…, **options): run the conformance kit of paddle_tfm over a class, a test for each check"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("conformance")
    if mark is None or "law" not in metafunc.fixturenames:
        return
    from paddle_tfm.testing import checks

    component = mark.kwargs.get("component")
    kind = mark.kwargs.get("way") or getattr(component, "kind", None)
    if not checks(kind):
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: @pytest.mark.conformance(component=…) needs a component, not {component!r}; "
            "for an ordinary layer add way='attention', 'norm', 'position' or 'encoder-decoder'"
        )
    metafunc.parametrize("law", [each.name for each in checks(kind)], indirect=True)


@pytest.fixture
def law(request: pytest.FixtureRequest):
    """A function that runs one check of the marked class. Raises AssertionError with what was seen, what it means and where
    to look; a declared limit, and what has nothing to look at here, is skipped with its reason."""
    mark = request.node.get_closest_marker("conformance")
    options, name = dict(mark.kwargs), request.param
    way, component = options.pop("way", None), options.pop("component")

    def run() -> None:
        from paddle_tfm.testing import FAIL, LIMIT, SKIP, examine, installed, with_class
        from paddle_tfm.testing.target import examine_class

        only = frozenset({name})
        if way is not None:
            report = examine_class(way, component, options, only=only)
        else:
            registry = installed()
            report = examine(*with_class(registry, component), options, registry, only)
        outcome = report[name]
        if outcome.status in (LIMIT, SKIP):
            pytest.skip(f"{outcome.status}: {outcome.seen}")
        if outcome.status == FAIL:
            pytest.fail(str(outcome), pytrace=False)

    return run
