"""Every installed component passes the kit, alone; and every pair of variants of two kinds passes together."""

import functools
import itertools
from importlib.util import find_spec

import numpy as np
import pytest

from paddle_tfm import create_registry
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.randomness import digest
from paddle_tfm.recipe.uses import default
from paddle_tfm.testing import EXPECTED_FAILURE, checks, examine
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.scene import Scene
from paddle_tfm.testing.models.size import ONE_LAYER, USUAL, Size
from paddle_tfm.testing.results import Failed

pytestmark = pytest.mark.conformance
EXHAUSTIVE = pytest.mark.exhaustive
REGISTRY = create_registry()
KINDS = ("attention", "position", "norm", "placement", "feed_forward", "head")
CLINIC = "clinic"


NEEDS = {  # component → its optional package
    ("metric", "moses_bleu"): "sacremoses", ("executor", "ray"): "ray", ("tokenizer", "chinese_words"): "jieba"
}  # fmt: skip


NEED_OPTIONS = {  # examined with options in test_kinds.py
    *(("task", name) for name in ("language", "parallel", "text", "truecase")),
    *(("tokenizer", name) for name in ("hugging_face", "sentencepiece_file", "subword_nmt")),
}


def installed_package(entry):
    package = NEEDS.get((entry.kind, entry.name))
    missing = package is not None and find_spec(package) is None
    return [pytest.mark.skipif(missing, reason=f"the optional package {package} is not installed")]


def in_ci(kind: str, name: str) -> bool:
    """Of what stands in a model a twelfth, the same at every run, and what most recipes have; of executors the one that
    most use, and all that is quick. The others are tried with `-m conformance` alone; a change to one is tried by `plugin
    check`."""
    if kind == "executor":
        return name == "local"
    if (kind, name) == ("task", "questions"):  # it takes half a minute
        return False
    return kind not in KINDS or default(kind) == name or digest("in ci", kind, name) % 12 == 0


def entries(clinic: bool = False):
    return [
        pytest.param(
            entry.kind,
            entry.name,
            id=f"{entry.kind} {entry.name}",
            marks=[*installed_package(entry), *([] if in_ci(entry.kind, entry.name) else [EXHAUSTIVE])],
        )
        for entry in REGISTRY
        if checks(entry.kind)
        and (entry.provider.plugin == CLINIC) == clinic
        and (entry.kind, entry.name) not in NEED_OPTIONS
    ]


def invariants(kind):
    """Names of its checks but for those that only inform."""
    return frozenset(check.name for check in checks(kind) if not check.information)


@pytest.mark.parametrize("kind, name", entries())
def test_the_component_passes(kind, name):
    report = examine(kind, name, registry=create_registry(), only=invariants(kind))
    assert [str(outcome) for outcome in report.failures] == []


@pytest.mark.parametrize("kind, name", sorted(NEED_OPTIONS))
def test_what_needs_options_says_so(kind, name):
    with pytest.raises(UserError, match=f"^{kind} {name} (needs|cannot be built)"):
        examine(kind, name, registry=create_registry())


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
    number = {column: i for i, column in enumerate(columns)}

    def place(pair: tuple[str, str]) -> int:
        return number[pair[0]]

    def pair_of(one: tuple[str, str], other: tuple[str, str]) -> tuple[tuple[str, str], tuple[str, str]]:
        return (one, other) if place(one) < place(other) else (other, one)

    missing = {((a, x), (b, y)) for a, b in itertools.combinations(columns, 2) for x in table[a] for y in table[b]}
    rows = []
    while missing:
        best, covered, candidates = None, -1, sorted(missing)
        for _ in range(12):
            row = dict(candidates[rng.integers(len(candidates))])
            for column in rng.permutation([column for column in columns if column not in row]):
                gains = [
                    sum(pair_of((column, value), other) in missing for other in row.items()) for value in table[column]
                ]
                row[str(column)] = table[column][int(rng.choice(np.flatnonzero(np.array(gains) == max(gains))))]
            new = set(itertools.combinations(sorted(row.items(), key=place), 2)) & missing
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


ROWS = [{kind: row[kind] for kind in KINDS} for row in covering({kind: installed(kind) for kind in KINDS})]
INVARIANTS = ("causal", "padding", "neighbours", "cached", "beams", "masked_rows")

# (kind, its variants, other kind) → variants of that kind beside which they are refused; every other pair is built.
_NEED_QUERIES = ("cope", "grape_a", "nope_hybrid", "pope", "rotary", "shaw", "transformer_xl", "xpos", "yarn")
_NEED_SCORES = (*_NEED_QUERIES, "alibi", "fire", "kerple", "t5")
REFUSED = {
    (
        "attention",
        ("convolution", "gated_deltanet", "kimi_delta", "linear", "recurrent"),
        "position",
    ): _NEED_SCORES,  # they compute no score of two tokens
    ("attention", ("differential", "single_head"), "position"): ("shaw",),  # no term of the values
    ("attention", ("mla",), "position"): ("cope", "grape_a", "shaw", "transformer_xl"),  # no terms of scores and values
    # a token of the source has no distance to one of the text
    ("attention", ("merged",), "position"): (
        "alibi",
        "cope",
        "fire",
        "grape_a",
        "kerple",
        "shaw",
        "t5",
        "transformer_xl",
    ),
    ("attention", ("synthesizer",), "position"): _NEED_QUERIES,  # it has no queries and keys
    ("attention", ("single_head",), "placement"): ("sub_ln", "hybrid_norm"),  # no norm before the output projection,
    (
        "attention",
        ("convolution", "linear", "recurrent", "synthesizer", "gated_deltanet", "kimi_delta", "mla", "lora"),
        "placement",
    ): ("hybrid_norm",),  # nor of q, k, v
    ("norm", ("batch", "batch_per_position", "power", "regularized_batch"), "placement"): ("hybrid_norm",),  # the same
    # the same
    ("placement", ("sub_ln",), "feed_forward"): ("mixture_of_experts", "deepseek_moe", "canon", "token_shift"),
}
REFUSED_PAIRS = {
    ((kind, name), (other, partner))
    for (kind, names, other), partners in REFUSED.items()
    for name in names
    for partner in partners
}


@functools.cache
def subject_of(kind: str, name: str) -> ComponentUnderTest:
    return ComponentUnderTest(REGISTRY, kind, name)


def scene_of(row: dict[str, str], size: Size = USUAL) -> Scene:
    """A model of these variants, each wherever it may stand, and base.yaml's elsewhere."""
    subjects = [subject_of(kind, name) for kind, name in row.items()]
    values = {each.kind: each.at(each.site_names) if each.site_names else each.spec for each in subjects}
    subject = subjects[0]
    settings = subject.settings(size, values.pop(subject.kind), **values)
    return Scene(subject, size, settings, " ".join(row.values()))


def problems_of(scene: Scene) -> list[str]:
    """The sentences with which a model is refused; none if it is built."""
    try:
        scene.model(moved=False)
    except RecipeError as error:
        assert all(problem.message and problem.path.startswith("model.") for problem in error.problems)
        return [problem.message for problem in error.problems]
    return []


@pytest.mark.parametrize(
    "one, two",
    [
        pytest.param(*pair, marks=EXHAUSTIVE if "attention" in pair and "position" not in pair else ())
        for pair in itertools.combinations(KINDS, 2)
    ],
    ids=lambda kind: kind,
)
def test_which_pairs_are_refused(one, two):
    """One refusal more is a variant that people can no longer combine, one less a check that is gone."""
    refused = set()
    for pair in itertools.product(installed(one), installed(two)):
        problems = problems_of(scene_of(dict(zip((one, two), pair)), ONE_LAYER))
        assert all("does not support" in each or "which the placement asks for" in each for each in problems), problems
        if problems:
            refused.add(tuple(zip((one, two), pair)))
    assert refused == {pair for pair in REFUSED_PAIRS if (pair[0][0], pair[1][0]) == (one, two)}


def sampled(rows):
    """The rows, all but a few tried with `-m conformance` alone: the same few at every run."""
    few = set(np.random.default_rng(7).choice(len(rows), 12, replace=False).tolist())
    return [pytest.param(row, marks=() if i in few else EXHAUSTIVE) for i, row in enumerate(rows)]


@pytest.mark.parametrize("row", sampled(ROWS), ids=lambda row: " ".join(row.values()))
def test_pairs(row):
    scene = scene_of(row)
    refused = bool(set(itertools.combinations(row.items(), 2)) & REFUSED_PAIRS)
    assert bool(problems_of(scene)) == refused
    if refused:
        return
    vars(scene)["evaluated_model"] = scene.model("float64")  # variants together may magnify float32's rounding
    results = {check.name: check.once(scene) for check in checks("attention") if check.name in INVARIANTS}
    assert set(results) == set(INVARIANTS)
    assert {name: each.text for name, each in results.items() if isinstance(each, Failed)} == {}
