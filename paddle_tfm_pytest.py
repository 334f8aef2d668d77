"""The conformance kit as a pytest plugin: a test for every check, of a class of yours.

Example::

    @pytest.mark.conformance(component=MyNorm, eps=1e-3)
    def test_my_norm(conformance_check):
        conformance_check()

`-m conformance` chooses these tests. The mark's other arguments are the component's options; `as_kind="attention"`
(norm, position, encoder-decoder) checks an ordinary layer as it is.

pytest imports this module in every session of an environment where paddle_tfm is installed, so it stands outside the
package and imports nothing of it before a test asks (docs/decisions/checks.md).
"""

from __future__ import annotations

import pytest

MARK = "conformance(component=…, **options): run the conformance kit of paddle_tfm over a class, a test for each check"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("conformance")
    if mark is None or "conformance_check" not in metafunc.fixturenames:
        return
    from paddle_tfm.testing import checks

    component = mark.kwargs.get("component")
    kind: str = mark.kwargs.get("as_kind", "") or getattr(component, "kind", "")
    if not checks(kind):
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: @pytest.mark.conformance(component=…) needs a component, but is "
            f"{component!r}; for an ordinary layer add as_kind='attention', 'norm', 'position' or 'encoder-decoder'"
        )
    metafunc.parametrize("conformance_check", [check.name for check in checks(kind)], indirect=True)


@pytest.fixture
def conformance_check(request: pytest.FixtureRequest):
    """A function that runs one check of the class that `@pytest.mark.conformance(component=…)` names. It fails with
    what was seen, its consequence and where to look; an expected failure, and what does not apply, is skipped with its
    reason."""
    mark = request.node.get_closest_marker("conformance")
    if mark is None or not hasattr(request, "param"):
        pytest.fail(
            f"{request.node.nodeid} uses the fixture `conformance_check`, so it must be marked with "
            "@pytest.mark.conformance(component=MyClass)",
            pytrace=False,
        )
    options, name = dict(mark.kwargs), request.param
    as_kind, component = options.pop("as_kind", None), options.pop("component")

    def run() -> None:
        from paddle_tfm import UserError
        from paddle_tfm.testing import EXPECTED_FAILURE, FAIL, SKIP, examine, installed, with_class
        from paddle_tfm.testing.lookup import examine_class

        only = frozenset({name})
        try:
            if as_kind is not None:
                outcome = examine_class(as_kind, component, options, only=only)[name]
            else:
                registry = installed()
                outcome = examine(*with_class(registry, component), options, registry, only)[name]
        except UserError as error:
            pytest.fail(str(error), pytrace=False)
        if outcome.status in (EXPECTED_FAILURE, SKIP):
            pytest.skip(f"{outcome.status}: {outcome.detail}")
        if outcome.status == FAIL:
            pytest.fail(str(outcome), pytrace=False)

    return run
