"""A recipe that nobody would write by hand is refused before it is built: aliases, depth, numbers, size, and products."""

import itertools

import pytest

from paddle_tfm.errors import UserError
from paddle_tfm.recipe import limits, yaml_lines
from paddle_tfm.recipe.loading import load


def _aliases_of_aliases(levels):
    """Each level is a list of nine of the one before: 9 ** levels values in a text of some hundred characters."""
    names = "abcdefghijklmnop"
    pairs = itertools.pairwise(names[: levels + 1])
    lines = [f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in pairs]
    return "\n".join(["a: &a [x, x]", *lines, ""])


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
    ],
)
def test_what_would_grow_without_end_is_refused_at_once(text, message):
    with pytest.raises(UserError) as caught:
        yaml_lines.load(text, "f")
    assert str(caught.value) == message


def test_what_stays_below_the_limits_is_read():
    data, _ = yaml_lines.load(_aliases_of_aliases(4) + "deep: " + "[" * 48 + "]" * 48, "f")
    assert sum(len(group) for part in data["e"] for one in part for group in one) == 9**3 * 9


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    (tmp_path / "large.yaml").write_text("base: base.yaml\n#" + "x" * limits.BYTES)
    with pytest.raises(UserError, match=r"large\.yaml: has 1,000,017 bytes, but a recipe has at most 1,000,000"):
        load(str(tmp_path / "large.yaml"))


@pytest.mark.parametrize("name", ["copy", "quickstart"])  # without variants, and with some
def test_a_product_of_too_many_variants_is_a_sentence(name):
    lists = [f"{path}={','.join(map(str, range(4, 404, 4)))}" for path in ("model.d_ff", "train.steps")]
    with pytest.raises(UserError, match=r"would be (5 × )?100 × 100( × 2)? = [25]0,000 variants, but at most 10,000"):
        load(name, [*lists, *(["evaluate.every=10,20"] if name == "copy" else [])]).written_variants()
