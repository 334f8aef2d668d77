"""Seeds that are added while a question is open: which cells are trained, and that nothing else decides it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from paddle_tfm.recipe.expansion import RunSpec
from paddle_tfm.recipe.sections.seeds import SeedPlan
from paddle_tfm.sweep.added_seeds import stages
from paddle_tfm.sweep.cells import Cell

PLAN = SeedPlan(at_most=8, looks=[3, 5, 8])
CELLS = [Cell(RunSpec("r", variant, seed, {}), Path(f"{variant}{seed}")) for seed in range(1, 9) for variant in "abc"]


@dataclass
class Looks:
    """Answers of looks, in order, and what each was shown."""

    answers: list

    def __post_init__(self):
        self.shown = []

    def __call__(self, cells):
        self.shown.append([cell.folder.name for cell in cells])
        return self.answers[len(self.shown) - 1]


def names(part):
    return [cell.folder.name for cell in part]


def test_a_list_of_seeds_is_one_stage_without_a_question():
    assert [names(part) for part in stages(CELLS, None, Looks([]))] == [names(CELLS)]


def test_only_open_variants_get_more_seeds_and_the_baseline_goes_with_them():
    looks = Looks([{"a", "c"}, {"a", "c"}])
    parts = [names(part) for part in stages(CELLS, PLAN, looks)]
    assert parts == [
        ["a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"],
        ["a4", "c4", "a5", "c5"],
        ["a6", "c6", "a7", "c7", "a8", "c8"],
    ]
    assert looks.shown == [parts[0], parts[0] + parts[1]]  # and none after the last look


@pytest.mark.parametrize(("answers", "seeds"), [([set()], 3), ([{"a", "b"}, set()], 5)])
def test_it_ends_where_all_is_settled(answers, seeds):
    parts = list(stages(CELLS, PLAN, Looks(answers)))
    assert max(cell.spec.seed for cell in parts[-1]) == seeds


def test_what_was_settled_stays_so():
    parts = list(stages(CELLS, PLAN, Looks([{"a", "c"}, {"a", "b", "c"}])))
    assert {cell.spec.variant for cell in parts[-1]} == {"a", "c"}


def test_what_stands_beside_a_cell_is_due_with_it_and_decides_nothing():
    beside = [Cell(RunSpec("r", cell.spec.variant, cell.spec.seed, {}), cell.folder / "own") for cell in CELLS]
    looks = Looks([{"a", "c"}, set()])
    parts = [[str(cell.folder) for cell in part] for part in stages(CELLS, PLAN, looks, beside)]
    own = [[f"{name}/own" for name in some] for some in looks.shown]
    assert parts[0] == [*looks.shown[0], *own[0]]
    assert parts[1] == ["a4", "c4", "a5", "c5", "a4/own", "c4/own", "a5/own", "c5/own"] and len(parts) == 2
    (whole,) = stages(CELLS, None, looks, beside)
    assert whole == [*CELLS, *beside]
