"""A recipe that nobody would write by hand is refused before it is built: aliases, depth, numbers, size, and products."""

import itertools
import time
import tracemalloc

import pytest
from recipe_text import load_text

from paddle_tfm.errors import UserError
from paddle_tfm.recipe import limits, yaml_lines
from paddle_tfm.recipe.loading import load


def _aliases_of_aliases(levels):
    """Each level is a list of nine of the one before: 9 ** levels values in a text of some hundred characters."""
    names = "abcdefghijklmnop"
    pairs = itertools.pairwise(names[: levels + 1])
    lines = [f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in pairs]
    return "\n".join(["a: &a [x, x]", *lines, ""])


def _paths_alike(levels):
    """Two ways to write one path, {a.a: …, a: {a: …}}: 2 ** (levels / 2) values under few paths."""
    lines = [f"{i}: &x{i} {{a.a: *x{i - 2}, a: *x{i - 1}}}" for i in range(2, levels)]
    return "\n".join(["0: &x0 1", "1: &x1 {a: 1}", *lines])


@pytest.mark.parametrize(
    "text, message",
    [
        (
            _aliases_of_aliases(12),
            "f: not a recipe: has more than 100,000 values, an alias counted as what it stands for",
        ),
        ("a: " + "[" * 51 + "]" * 51, "f line 1: nested more than 50 deep"),
        ("a: 1\nb: " + "{c: " * 51 + "1" + "}" * 51, "f line 2: nested more than 50 deep"),
        (
            "a: &a0 [1]\n" + "".join(f"b{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 60)),
            "f line 1: nested more than 50 deep",
        ),
        ("? " + "a." * 60 + "a\n: 1", "f line 2: nested more than 50 deep"),
        ("? " + "a" * 2_000 + "\n: [x, x]", "f line 2: a path of 2,000 characters; at most 1,000 are read"),
        (_paths_alike(40), "f: not a recipe: has more than 100,000 values, an alias counted as what it stands for"),
    ],
)
def test_what_would_grow_without_end_is_refused_at_once(text, message):
    tracemalloc.start()
    begin = time.process_time()
    with pytest.raises(UserError) as caught:
        yaml_lines.load(text, "f")
    seconds, (_, most) = time.process_time() - begin, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert str(caught.value) == message
    assert seconds < 20 and most < 100_000_000


def test_what_stays_below_the_limits_is_read():
    data, _ = yaml_lines.load(_aliases_of_aliases(4) + "deep: " + "[" * 48 + "]" * 48, "f")
    assert sum(len(group) for part in data["e"] for one in part for group in one) == 9**3 * 9


@pytest.mark.parametrize("dots", [20, 44, 45, 50])
@pytest.mark.parametrize("value", ["1", "{a.b: [1]}"])
def test_what_is_resolved_can_be_read_again(dots, value):
    """Dots, mappings, lists and places of components add up: what is too deep is refused before anything is trained."""
    for override in (f"tokenizer{dots * '.a'}={value}", f"tokenizer.source{(dots - 1) * '.a'}={value}"):
        try:
            runs, problems = load("copy", [f"tokenizer={{name: word, b: {20 * '['}{20 * ']'}}}", override]).expand()
        except UserError as error:
            assert dots > 44 and "50 deep" in str(error)
            continue
        if problems:
            assert dots > 44 and [problem.message for problem in problems] == ["nested more than 50 deep"]
        else:
            again, _ = yaml_lines.load(yaml_lines.dump(runs[0].data), "again")
            assert again == runs[0].data


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    (tmp_path / "large.yaml").write_text("base: base.yaml\n#" + "x" * limits.BYTES)
    with pytest.raises(UserError, match=r"large\.yaml: has 1,000,017 bytes, but a recipe has at most 1,000,000"):
        load(str(tmp_path / "large.yaml"))


@pytest.mark.parametrize("name", ["copy", "quickstart"])  # without variants, and with some
def test_a_product_of_too_many_variants_is_a_sentence(name):
    lists = [f"{path}={','.join(map(str, range(4, 404, 4)))}" for path in ("model.d_ff", "train.steps")]
    with pytest.raises(UserError, match=r"would be (5 × )?100 × 100( × 2)? = [25]0,000 variants, but at most 10,000"):
        load(name, [*lists, *(["evaluate.every=10,20"] if name == "copy" else [])]).written_variants()


def test_the_variants_of_a_large_grid_are_checked_in_time_that_grows_with_their_number():
    def seconds(values):
        recipe = load("copy", [f"train.steps={','.join(map(str, range(1, values + 1)))}"])
        begin = time.process_time()
        runs = recipe.runs()
        assert len(runs) == values
        return time.process_time() - begin

    seconds(10)
    assert seconds(400) < 12 * seconds(100)  # four times, were there no noise; it was as the square, sixteen


@pytest.mark.parametrize(
    "variants, more, sentence",
    [
        (
            101,
            "seeds: {at_most: 1000, open_ended: true}",
            "would be 101 variants × 1,000 seeds = 101,000 runs, but at most 100,000",
        ),
        (
            2_000,
            f"requires: [{', '.join(['x'] * 6_000)}]",
            r"2,000 variants of 6,\d\d\d values each, but at most 10,000,000 are read",
        ),
    ],
)
def test_too_many_runs_and_variants_of_too_many_values_are_a_sentence(tmp_path, variants, more, sentence):
    text = f"variants: {{{', '.join(f'v{i}: {{model.norm: rms}}' for i in range(variants))}}}\n{more}"
    with pytest.raises(UserError, match=sentence):
        load_text(tmp_path, f"base: base.yaml\nname: many\nsummary: s\n{text}\n").expand()
