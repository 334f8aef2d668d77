"""Times on the command line."""

import pytest

from paddle_tfm.cli.durations import Duration
from paddle_tfm.errors import UserError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("1.5m", 90), ("500ms", 0.5), ("2", 2), (" 2s ", 2)],
)
def test_a_time_is_read(text, seconds):
    assert Duration("2s").convert(text, None, None) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "m", "2 days", "-1s", "1h30x", "1e3s", "30m2", "2d"])
def test_what_is_no_time_is_said(text):
    with pytest.raises(UserError, match="must be a duration, such as 2s"):
        Duration("2s").convert(text, None, None)


def test_a_time_may_be_too_short():
    with pytest.raises(UserError, match="of at least 100ms"):
        Duration("2s", least="100ms").convert("99ms", None, None)
    assert Duration("2s", least="100ms").convert("100ms", None, None) == pytest.approx(0.1)


@pytest.mark.parametrize("text", ["10000h1s", "9" * 400 + "h", "9" * 5_000])
def test_a_time_may_be_too_long(text):
    with pytest.raises(UserError, match="of at most 10000h"):
        Duration("2s").convert(text, None, None)
