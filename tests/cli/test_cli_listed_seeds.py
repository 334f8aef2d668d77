"""Seeds that are listed, compared, and listed again: what was looked at before counts, through what `compare` does."""

import json

import numpy as np
import pytest
from command_line import call
from scipy import stats
from test_cli_compare import finished

from paddle_tfm.cli.compare import comparison_of
from paddle_tfm.comparison.report.report import keep_look
from paddle_tfm.runs.sweep_files import LOOKS_FILE

NOISE = np.random.default_rng(41).normal(0, 1, (2, 40))
BASE, OURS = 30 + NOISE[0], 30.3 + NOISE[1]


def train(sweep, seeds, base=BASE, ours=OURS):
    """Finished runs of `seeds`, as far as they are not there yet."""
    for seed, *pair in zip(seeds, base, ours):
        for variant, value in zip(("base", "ours"), pair):
            if not (sweep / variant / f"seed-{seed}").exists():
                finished(sweep, variant, seed, float(value))
    (sweep / "command.json").write_text(json.dumps({"command": [], "runs": [], "baseline": "base", "question": {}}))


def seen(root):
    """The difference that somebody sees who compares what is there."""
    comparison = comparison_of([root])
    keep_look(comparison)
    (difference,) = [row.difference for row in comparison.rows if row.difference]
    return difference


def p_of(size):
    return stats.ttest_rel(OURS[:size], BASE[:size]).pvalue


def test_each_look_has_its_share_of_the_level_and_counts_once(tmp_path):
    train(tmp_path, range(1, 4))
    for _ in range(3):  # to see the same again is no look
        first = seen(tmp_path)
        assert (first.looks, first.p) == ((3,), pytest.approx(min(1, p_of(3) / 0.8)))
    interval = stats.ttest_rel(OURS[:3], BASE[:3]).confidence_interval(1 - 0.05 * 0.8)
    assert (first.low, first.high) == pytest.approx((interval.low, interval.high))
    train(tmp_path, range(1, 6))
    for second in (seen(tmp_path), seen(tmp_path)):
        assert (second.looks, second.p) == ((3, 5), pytest.approx(min(1, p_of(3) / 0.8, p_of(5) / 0.05)))
    train(tmp_path, range(1, 9))
    third = seen(tmp_path)
    assert (third.looks, third.p) == ((3, 5, 8), pytest.approx(min(1, p_of(3) / 0.8, p_of(5) / 0.05, p_of(8) / 0.025)))
    looks = json.loads((tmp_path / LOOKS_FILE).read_text())["looks"]
    assert looks[1] == [f"{variant}/seed-{seed}" for variant in ("base", "ours") for seed in (4, 5)]


def test_pairs_count_in_the_order_in_which_they_were_seen(tmp_path):
    """Whoever adds smaller seeds changes no look that was taken."""
    train(tmp_path, [7, 8, 9], [30, 30, 30], [34, 34.1, 34.2])
    first = seen(tmp_path)
    train(tmp_path, [1, 2], [30, 30], [10, 50])
    second = seen(tmp_path)
    assert (first.verdict, second.verdict) == ("better", "better") and second.p == first.p
    assert second.looks == (3, 5)


def test_a_damaged_record_is_said(tmp_path):
    train(tmp_path, [1, 2, 3])
    (tmp_path / LOOKS_FILE).write_text('{"looks": [3]}')
    done = call("compare", tmp_path)
    assert done.status == 2 and f"{LOOKS_FILE}: damaged: `looks.0` " in done.err


def test_compare_keeps_its_look_and_says_what_intervals_are_adjusted_for(tmp_path):
    for seeds, words in ((3, "seeds that may be added"), (5, "looks after 3 seeds"), (8, "looks after 3 and 5 seeds")):
        train(tmp_path, range(1, seeds + 1))
        done = call("compare", tmp_path, "--out", tmp_path / "elsewhere")
        assert f"its 95% interval (Student's t, adjusted for {words})" in " ".join(done.out.split()), done.err
        assert f"adjusted for {words}" in (tmp_path / "elsewhere/comparison.html").read_text("utf-8")
