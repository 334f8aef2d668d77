"""Every installed component passes the kit, alone; and every pair of variants of two kinds passes together."""

import itertools

import numpy as np
import pytest

from paddle_tfm import create_registry
from paddle_tfm.errors import RecipeError
from paddle_tfm.testing import EXPECTED_FAILURE, checks, examine
from paddle_tfm.testing.subject import USUAL, Scene, Subject

pytestmark = pytest.mark.conformance
REGISTRY = create_registry()
KINDS = ("attention", "position", "norm", "placement", "feed_forward", "head")
CLINIC = "clinic"


def entries(clinic: bool = False):
    return [
        pytest.param(entry.kind, entry.name, id=f"{entry.kind} {entry.name}")
        for entry in REGISTRY
        if checks(entry.kind) and (entry.provider.plugin == CLINIC) == clinic
    ]


@pytest.mark.parametrize("kind, name", entries())
def test_the_component_passes(kind, name):
    report = examine(kind, name, registry=create_registry())
    assert [str(outcome) for outcome in report.failures] == []


@pytest.mark.parametrize("kind, name", entries(clinic=True))
def test_what_is_wrong_on_purpose_fails_by_what_it_declares_and_by_nothing_else(kind, name):
    report = examine(kind, name, registry=create_registry())
    assert [str(outcome) for outcome in report.failures] == []
    declared = {outcome.check.name for outcome in report if outcome.status == EXPECTED_FAILURE}
    assert declared == set(REGISTRY.entry(kind, name).load().expected_failures)


# --------------------------------------------------------------------------------------------------------------- pairs


def covering(table: dict[str, list[str]]) -> list[dict[str, str]]:
    """Rows such that every pair of values of two columns stands in one of them: greedily, the row that covers most."""
    rng = np.random.default_rng(5)
    columns = list(table)
    missing = {((a, x), (b, y)) for a, b in itertools.combinations(columns, 2) for x in table[a] for y in table[b]}
    rows = []
    while missing:
        best, covered = None, -1
        for _ in range(12):
            row = dict(sorted(missing)[rng.integers(len(missing))])
            for column in rng.permutation([column for column in columns if column not in row]):
                gains = [
                    sum((tuple(sorted([(column, value), other], key=lambda at: columns.index(at[0]))) in missing) for other in row.items())
                    for value in table[column]
                ]  # fmt: skip
                row[str(column)] = table[column][int(rng.choice(np.flatnonzero(np.array(gains) == max(gains))))]
            new = set(itertools.combinations(sorted(row.items(), key=lambda at: columns.index(at[0])), 2)) & missing
            if len(new) > covered:
                best, covered, pairs = row, len(new), new
        rows.append(best)
        missing -= pairs
    return rows


def installed(kind: str) -> list[str]:
    return [entry.name for entry in REGISTRY if entry.kind == kind and entry.provider.plugin != CLINIC]


def test_rows_cover_every_pair():
    table = {"a": ["1", "2", "3"], "b": ["x", "y"], "c": ["p", "q", "r", "s"]}
    rows = covering(table)
    for one, two in itertools.combinations(table, 2):
        assert {(row[one], row[two]) for row in rows} == set(itertools.product(table[one], table[two]))
    assert len(rows) < 24


ROWS = covering({kind: installed(kind) for kind in KINDS})
OF_MODELS = (laws.causal, laws.padding, laws.neighbours, laws.cached, laws.beams, laws.saved, laws.masked_rows)


def settings(row: dict[str, str]):
    """A model of these variants, each wherever it may stand, and base.yaml's elsewhere."""
    subjects = {kind: Subject(REGISTRY, kind, name) for kind, name in row.items()}
    chosen = {
        kind: subject.at(subject.places) if subject.places else subject.spec for kind, subject in subjects.items()
    }
    subject = subjects["attention"]
    return subject, subject.settings(USUAL, chosen=chosen.pop("attention"), **chosen)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row.values()))
def test_pairs(row):
    subject, model = settings(row)
    scene = Scene(subject, USUAL, model, " ".join(row.values()))
    try:
        scene.model()
    except RecipeError as error:
        assert all(problem.message and problem.path.startswith("model.") for problem in error.problems)
        refused_for_a_reason(row, error)
        return
    for law in OF_MODELS:
        law(scene)


def refused_for_a_reason(row, error):
    """What is refused is an encoding that the attention does not support, or a norm inside that it has no place for."""
    text = str(error)
    assert "does not support" in text or "which the placement asks for" in text or "refuses" in text, text
