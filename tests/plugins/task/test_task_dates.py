"""The dates task, against a reader of dates of its own that knows nothing of formats."""

import datetime
import re

import pytest
from babel.dates import format_date, format_skeleton

from paddle_tfm.errors import UserError
from paddle_tfm.protocols import SPLITS
from paddle_tfm_plugins.task.dates import Dates

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
NUMERIC = [
    (r"(?P<y>\d{4})[-/](?P<m>\d\d)[-/](?P<d>\d\d)", "ymd"),
    (r"(?P<y>\d{4})-(?P<m>\d\d)", "ym"),
    (r"(?P<m>\d\d?)/(?P<d>\d\d?)/(?P<y>\d{4})", "ymd"),
    (r"(?P<m>\d\d?)/(?P<y>\d{4})", "ym"),
    (r"(?P<m>\d\d?)/(?P<d>\d\d?)", "md"),
]


def read_english(text):
    """(year, month, day, weekday), None for what is not stated."""
    matches = {}
    text = text.lower().replace(",", " ").replace(".", " ")
    for pattern, names in NUMERIC:
        if match := re.search(rf"(?<!\S){pattern}(?!\S)", text):
            matches = {name: int(match[name]) for name in names}
            text = text[: match.start()] + text[match.end() :]
            break
    for word in re.findall(r"[a-z]+|\d+(?:st|nd|rd|th)?", text):
        if word in ("the", "of"):
            continue
        if number := re.fullmatch(r"(\d+)(st|nd|rd|th)?", word):
            name = "y" if len(number[1]) == 4 else "d"
            assert name not in matches, text
            matches[name] = int(number[1])
            if number[2]:
                day = int(number[1])
                exception = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
                assert number[2] == exception.get(day, "th"), text
        else:
            name, table = ("m", MONTHS) if word[:3] in MONTHS else ("w", WEEKDAYS)
            assert name not in matches, text
            matches[name] = table.index(word[:3]) + (name == "m")
    return tuple(matches.get(name) for name in "ymdw")


def read_chinese(text):
    match = re.fullmatch(r"(?:(\d{4})年)?([1-9]\d?)月(?:([1-9]\d?)日)?(?:星期([一二三四五六日]))?", text)
    assert match, text
    year, month, day = (int(part) if part else None for part in match.groups()[:3])
    return year, month, day, "一二三四五六日".index(match[4]) if match[4] else None


@pytest.fixture(scope="module")
def splits():
    task = Dates()
    return {split: list(task.examples(split)) for split in SPLITS}


@pytest.mark.parametrize("split", SPLITS)
def test_target_holds_exactly_the_fields_of_the_source(splits, split):
    for source, target, *_ in splits[split]:
        assert read_english(source) == read_chinese(target), (source, target)


@pytest.mark.parametrize("split", SPLITS)
def test_a_stated_weekday_is_that_of_the_calendar(splits, split):
    seen = 0
    for _, target, *_ in splits[split]:
        year, month, day, weekday = read_chinese(target)
        if year and day:
            date = datetime.date(year, month, day)  # raises for a day that is not
            assert 1950 <= year <= 2049
            if weekday is not None:
                seen += 1
                assert date.weekday() == weekday, target
    assert seen > 100


def test_splits_share_no_date(splits):
    stated = {}
    for split, examples in splits.items():
        fields = [read_chinese(target)[:3] for _, target, *_ in examples]  # a weekday makes no other date of it
        stated[split] = set(fields)
        kinds = {tuple(part is None for part in each) for each in fields}
        assert len(kinds) == 3  # year-month-day, year-month, month-day
    assert not stated["train"] & stated["test"]
    assert not stated["train"] & stated["valid"]
    assert not stated["valid"] & stated["test"]


def _babel(date):
    for style in ("full", "long", "medium"):
        for locale in ("en", "en_GB"):
            yield (
                f"{style} {locale}",
                format_date(date, style, locale=locale),
                format_date(date, _zh(style), locale="zh"),
            )
    yield "short", format_date(date, "M/d/y", locale="en"), format_date(date, "long", locale="zh")
    for skeleton in ("MMMd", "MMMMd", "yMMM", "yMMMM"):
        zh = {"MMMMd": "MMMd", "yMMMM": "yMMM"}.get(skeleton, skeleton)
        yield skeleton, format_skeleton(skeleton, date, locale="en"), format_skeleton(zh, date, locale="zh")


def _zh(style):
    return "full" if style == "full" else "long"


def test_babel_agrees():
    """What Babel writes for a date occurs among the sources of one year, with the target that Babel writes in
    Chinese."""
    made = dict(example[:2] for example in Dates(train=12_000, first_year=2024, last_year=2024).examples("train"))
    matches = {}
    for ordinal in range(366):
        date = datetime.date(2024, 1, 1) + datetime.timedelta(days=ordinal)
        for name, source, target in _babel(date):
            if source in made:
                assert made[source] == target
                matches[name] = matches.get(name, 0) + 1
    assert set(matches) == {name for name, _, _ in _babel(datetime.date(2024, 1, 1))}
    assert all(count >= 5 for count in matches.values()), matches


def test_too_few_years():
    with pytest.raises(UserError, match=r"finds only \d+ sources for the split 'test' in the years 2024 to 2024; ask"):
        list(Dates(test=40_000, first_year=2024, last_year=2024).examples("test"))
