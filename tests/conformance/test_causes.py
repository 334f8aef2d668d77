"""The first line of a report: which cause the checks that fail together have in common."""

import pytest
from catalogue import WRONG
from catalogue import report as report_of

from paddle_tfm import create_registry
from paddle_tfm.testing import FAIL, PASS, Outcome, Report, checks, examine
from paddle_tfm.testing.causes import CAUSES
from paddle_tfm.testing.lookup import find


def report(kind, *failed, **details):
    """A report in which these checks fail, each with a detail of its own."""
    known = {check.name: check for check in checks(kind)}
    outcomes = [Outcome(known[name], FAIL, details.get(name, f"seen by {name}")) for name in failed]
    return Report(kind, "Mine", outcomes)


EVERY_TOKEN = ("causal", "causal_in_training", "padding", "padding_in_training", "neighbours", "cached", "beams")


@pytest.mark.parametrize(
    "kind, failed, words",
    [
        ("attention", EVERY_TOKEN, "queries attend to masked keys"),
        ("attention", (*EVERY_TOKEN, "bidirectional"), "a reshape takes heads for positions"),
        ("placement", ("modes", "dropout", "each_branch_once", "identity_path"), "the residual does not pass"),
        ("attention", (*EVERY_TOKEN, "averages"), "the softmax runs over another axis"),
        ("norm", EVERY_TOKEN, "a mean, a sum, a softmax or an index runs over the tokens"),
        ("attention", ("causal", "causal_in_training", "cached"), "the future is visible"),
        ("encoder-decoder", ("causal", "causal_in_training"), "the future is visible"),
        ("attention", ("padding", "padding_in_training", "neighbours"), "padding is seen"),
        ("norm", ("causal_in_training", "neighbours_in_training"), "as in BatchNorm"),
        ("attention", ("cached", "beams"), "`extend` of the cache drops"),
        ("attention", ("cached", "stateless"), "keeps something from one call to the next"),
        ("attention", ("neighbours", "cached"), "[B, T] taken for [T, B]"),
        ("position", ("cached", "pure", "relative"), "the length of a tensor"),
        ("position", ("neighbours", "cached", "pure", "nearness"), "the last position"),
        (
            "position",
            ("neighbours", "beams", "pure", "positions_differ"),
            "axis of the batch is taken for that of positions",
        ),
        ("position", ("padding", "neighbours", "pure", "positions_differ"), "the length of a tensor"),
        ("position", ("positions_differ", "relative"), "queries and keys are not turned alike"),
        ("placement", ("trains", "each_branch_once", "own_norms"), "a sublayer is left out"),
        ("attention", ("causal", "inputs_unchanged"), "an input is changed in place"),
        ("head", ("padding", "sums_to_one"), "overwritten where it stands twice in the source"),
        (
            "head",
            ("repeatable", "padding_in_training", "evaluation"),
            "numbers are drawn that the seed does not decide",
        ),
    ],
)
def test_checks_that_fail_together_name_what_they_have_in_common(kind, failed, words):
    assert words in report(kind, *failed).most_likely


def test_one_failure_says_where_to_look_and_none_says_nothing():
    (beams,) = (check for check in checks("attention") if check.name == "beams")
    assert report("attention", "beams").most_likely == beams.hint
    assert report("attention").most_likely == ""


def test_numbers_that_are_not_finite_are_said_first():
    seen = "one batch computed twice in evaluation: numbers that are not finite"
    assert report("norm", "deterministic", deterministic=seen).most_likely.startswith("NaN or infinity")


def test_a_gradient_that_was_kept_and_cleared_is_said_in_words():
    seen = (
        "RuntimeError: (PreconditionNotMet) Tensor holds no memory. Call Tensor::mutable_data firstly. (mine.py line 3)"
    )
    (any_gradient,) = (check for check in checks("optimizer") if check.name == "any_gradient")
    assert "keep a copy" in Report("optimizer", "Mine", [Outcome(any_gradient, FAIL, seen, raised=True)]).most_likely


def test_one_error_that_ends_several_checks_counts_once():
    error = "ValueError: shapes"
    same = report("attention", "cached", "stateless", cached=error, stateless=error)
    assert "`extend` of the cache drops" in same.most_likely


def test_an_error_that_no_cause_explains_is_quoted():
    (runs,) = (check for check in checks("norm") if check.name == "runs")
    outcome = Outcome(runs, FAIL, "KeyError: 'gain' (mine.py line 3); `forward` gets x [B, T, C]", raised=True)
    assert Report("norm", "Mine", [outcome]).most_likely == "KeyError: 'gain' (mine.py line 3)"


def test_each_cause_is_of_checks_that_exist_and_none_hides_another():
    every = ("attention", "norm", "position", "placement", "feed_forward", "head", "encoder-decoder")
    for cause in CAUSES:
        fails = cause.fails or ("runs",)
        kinds = [kind for kind in cause.kinds or every if {*fails} <= {check.name for check in checks(kind)}]
        assert kinds, cause
        says = {fails[0]: cause.seen} if cause.seen else {}
        assert cause.sentence in [report(kind, *fails, **says).most_likely for kind in kinds], cause


def test_what_no_other_mistake_explains_is_said_beside_it():
    both = report("attention", "causal", "padding", "evaluation", evaluation="evaluated twice: they differ by 0.1")
    assert "queries attend to masked keys" in both.most_likely
    assert both.most_likely.endswith("; a dropout of its own, which does not ask `self.training`")
    unread = Report("attention", "Mine", both.outcomes, cause="`mask` is never read")
    assert unread.most_likely.startswith("`mask` is never read; a dropout of its own")


def test_an_error_that_ends_every_check_is_quoted_and_one_that_ends_a_later_one_stands_behind_its_hint():
    known = {check.name: check for check in checks("attention")}
    error = "IndexError: 96 is out of range (mine.py line 3); `forward` gets x"
    broken = Outcome(known["masked_rows"], FAIL, error, raised=True)
    assert Report("attention", "Mine", [broken]).most_likely == "IndexError: 96 is out of range (mine.py line 3)"
    later = Report("attention", "Mine", [Outcome(known["runs"], PASS), broken]).most_likely
    assert later == f"{broken.check.hint} (IndexError: 96 is out of range (mine.py line 3))"


@pytest.mark.conformance
@pytest.mark.parametrize(
    "mutant, words",
    [
        ("attention: no mask", "queries attend to masked keys"),
        ("attention: one token sees padding", "a call with one token takes another path"),
        ("attention: the mask of the first batch of a shape", "keeps something from one call to the next"),
        ("attention: a gate that is made in forward", "a parameter is made in `forward`"),
        ("rotary: by the tensor's length", "the length of a tensor"),
        ("attention: a past that is cut off", "`extend` of the cache drops"),
        ("own_placement: only the first sublayer", "a sublayer is left out"),
        ("sinusoidal: positions from 512 on are one", "up to a length that is not `max_length`"),
        ("tokenizer: what was cut before the texts were learned", "is not emptied by `fit` or `load`"),
        ("metric: the mean of the means of batches of 100", "means of batches are averaged"),
        ("metric: known by the output alone", "by its output or source alone"),
    ],
)
def test_a_bug_is_named_by_the_first_line(mutant, words):
    (bug,) = (each for each in WRONG if str(each) == mutant)
    some = {"registered", "causal", "padding", "cached", "stateless", "pure", "relative", "trains", "each_branch_once"}
    some |= {"far_positions", "learned_again", "order"}
    assert words in report_of(bug.source(), bug.of, frozenset(some)).most_likely


def test_an_error_of_a_backward_pass_has_the_line_whose_gradient_it_is(tmp_path):
    """Paddle multiplies [B, H, T, D] by [H, R, D], and cannot do it backwards."""
    file = tmp_path / "mine.py"
    file.write_text(
        "import paddle\n"
        "from paddle_tfm.protocols import PositionalEncoding\n"
        "class Mine(PositionalEncoding):\n"
        "    def __init__(self, num_heads, head_dim):\n"
        "        super().__init__()\n"
        "        self.table = self.create_parameter([num_heads, 5, head_dim])\n"
        "    def scores(self, q, k, q_positions, k_positions):\n"
        "        double = 2.0 * q\n"
        "        by_row = paddle.matmul(double, self.table, transpose_y=True)\n"
        "        index = (k_positions.unsqueeze(1) - q_positions.unsqueeze(2)).clip(-2, 2) + 2\n"
        "        shape = [*q.shape[:3], k.shape[2]]\n"
        "        return paddle.take_along_axis(by_row, index.unsqueeze(1).expand(shape), 3)\n"
    )
    registry = create_registry()
    runs = examine(*find(str(file), registry)[0], registry=registry)["runs"]
    assert runs.status == FAIL
    assert "(mine.py line 9, in the backward pass)" in runs.detail
