"""English dates in, Chinese dates out."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import NamedTuple

from babel import Locale
from babel.dates import tokenize_pattern

from paddle_tfm.errors import UserError, unknown
from paddle_tfm.protocols import SPLITS, Example, Task
from paddle_tfm.randomness import digest, generator
from paddle_tfm.validators import ascending, between, positive

# Sources: formats of CLDR (the two-digit year of `short` written out), and others that people use. In this notation a
# "th" after the day stands for st, nd, rd or th. Numeric months come in American order only: 3/5/2024 is the 5th of
# March.
CLDR = {
    "en": (
        *("full", "long", "medium", "short", "yMd", "yMEd", "yMMMEd", "yMMM", "yMMMM", "yM"),
        *("MMMd", "MMMMd", "MMMEd", "Md", "MEd"),
    ),
    "en_GB": (
        *("full", "long", "medium", "yMMMEd", "yMMMEEEEd"),
        *("MMMd", "MMMMd", "MMMEd", "MMMMEEEEd", "MMMEEEEd"),
    ),
}
INFORMAL_PATTERNS = (
    "y-MM-dd",
    "EEEE y-MM-dd",
    "y/MM/dd",
    "MM/dd/y",
    "dd MMM y",
    "d-MMM-y",
    "MMMM d'th', y",
    "MMM d'th', y",
    "d'th' MMMM y",
    "d'th' MMM y",
    "'the' d'th' 'of' MMMM, y",
    "d'th' 'of' MMMM y",
    "EEEE, MMMM d'th', y",
    "EEEE, 'the' d'th' 'of' MMMM, y",
    "EEEE 'the' d'th' 'of' MMMM y",
    "E, MMMM d, y",
    "EEEE, MMM d, y",
    "MMMM, y",
    "MMMM 'of' y",
    "y-MM",
    "MMMM d'th'",
    "MMM d'th'",
    "'the' d'th' 'of' MMMM",
    "d'th' 'of' MMM",
    "EEEE, MMMM d",
    "EEEE, MMM d",
    "EEEE, 'the' d'th' 'of' MMMM",
)
SHORT_NAME_VARIANTS = {"Tue": ("Tues",), "Thu": ("Thur", "Thurs"), "Sep": ("Sept",)}  # other short names in use
CLEAN_SHARE = 0.5  # of the sources, written without sloppiness


class Fields(NamedTuple):
    """A date; a format states some of its fields."""

    year: int
    month: int
    day: int
    weekday: int  # Monday is 0


Piece = tuple[str, int, str]  # a letter of CLDR and how often it stands ("M", 4, ""), or literal text ("", 0, ", ")


class Dates(Task):
    """English dates in some fifty formats, sloppily written, to Chinese: "tues., 5 march 2024" → "2024年3月5日星期二".

    Formats and names are those of CLDR, by way of Babel (another Babel release may bring other formats), and
    `INFORMAL_PATTERNS`. The target holds exactly the fields that the source states: nothing is to be computed.

    Splits share no date: each calendar date belongs to test, valid or train (10%, 10%, 80%) by a hash of it and
    `data_seed`, so that all its formats are on one side. A source without a year belongs by its (month, day), with a
    weekday or not, and one without a day by its (year, month); no such pair is on two sides. No source is ambiguous, so
    no source text is either. Within a split each source text, runs of spaces aside, comes once; a longer split begins
    with the shorter one.
    """

    def __init__(
        self,
        train: int = 20_000,
        valid: int = 1000,
        test: int = 1000,
        data_seed: int = 1,
        first_year: int = 1950,
        last_year: int = 2049,
    ):
        positive(train=train, valid=valid, test=test)
        between("[1000, 9999]", first_year=first_year, last_year=last_year)
        ascending(first_year=first_year, last_year=last_year)
        self.sizes = {"train": train, "valid": valid, "test": test}
        self.data_seed = data_seed
        self.years = range(first_year, last_year + 1)

    def examples(self, split: str) -> Iterator[Example]:
        if split not in SPLITS:
            raise UserError(unknown("split", split, SPLITS))
        return self._draw(split)

    def _draw(self, split: str) -> Iterator[Example]:
        dates = self._dates[split]
        usable = [form for form in formats() if dates[form.key]]
        rng = generator(self.data_seed, "dates", split)
        sources: set[str] = set()
        tries = 0
        while len(sources) < self.sizes[split]:
            tries += 1
            if tries > 1000 + 5 * self.sizes[split]:
                raise UserError(
                    f"task 'dates' finds only {len(sources)} sources for the split '{split}' in the years "
                    f"{self.years[0]} to {self.years[-1]}; ask for fewer than {self.sizes[split]}, or for more years"
                )
            which, when, weekday, *draws = rng.random(10).tolist()
            form = usable[int(which * len(usable))]
            fields = dates[form.key][int(when * len(dates[form.key]))]
            if "y" not in form.key:  # without a year any weekday will do
                fields = fields._replace(weekday=int(weekday * 7))
            source = write(form.source, fields, english(form.locale), draws)
            if (text := " ".join(source.split())) not in sources:
                sources.add(text)
                yield Example(source, write(form.target, fields, chinese()))

    @cached_property
    def _dates(self) -> dict[str, dict[str, list[Fields]]]:
        """Split → the key of a format ("yMd", "Md" or "yM") → the dates that it may write there."""
        dates = {split: {"yMd": [], "Md": [], "yM": []} for split in SPLITS}
        for year in self.years:
            for month in range(1, 13):
                first, days = calendar.monthrange(year, month)
                dates[self._split(f"{year}-{month}")]["yM"].append(Fields(year, month, 1, first))
                for day in range(1, days + 1):
                    fields = Fields(year, month, day, (first + day - 1) % 7)
                    dates[self._split(f"{year}-{month}-{day}")]["yMd"].append(fields)
        leap = next(filter(calendar.isleap, self.years), None)
        date = datetime.date(leap or self.years[0], 1, 1)
        while date.year == (leap or self.years[0]):
            dates[self._split(f"{date.month}/{date.day}")]["Md"].append(Fields(date.year, date.month, date.day, 0))
            date += datetime.timedelta(days=1)
        return dates

    def _split(self, key: str) -> str:
        return {0: "test", 1: "valid"}.get(digest(self.data_seed, "dates", key) % 10, "train")


# --------------------------------------------------------------------------------------------------------- formats


class Format(NamedTuple):
    """How a source is written, and the target that has the same fields."""

    source: tuple[Piece, ...]
    target: tuple[Piece, ...]
    locale: str
    key: str  # what decides about its split: "yMd", "Md" or "yM"


@cache
def formats() -> tuple[Format, ...]:
    """All formats, in an order of their own."""
    patterns = dict.fromkeys(INFORMAL_PATTERNS, "en")
    for name, keys in CLDR.items():
        locale = Locale.parse(name)
        in_locale = [locale.date_formats.get(key) or locale.datetime_skeletons.get(key) for key in keys]
        for pattern in filter(None, in_locale):
            patterns.setdefault(str(pattern.pattern).replace("yy", "y"), name)
    result = []
    for pattern, name in sorted(patterns.items()):
        source = parse(pattern)
        fields = "".join(field for field in "yMdE" if field in {letter for letter, _, _ in source})
        result.append(Format(source, target(fields), name, fields.removesuffix("E")))
    return tuple(result)


def target(fields: str) -> tuple[Piece, ...]:
    """CLDR's Chinese format of these fields, the weekday written in full."""
    locale = Locale("zh")
    pattern = {
        "yMdE": locale.date_formats["full"],
        "yMd": locale.date_formats["long"],
        "yM": locale.datetime_skeletons["yMMM"],
        "Md": locale.datetime_skeletons["MMMd"],
        "MdE": locale.datetime_skeletons["MMMEd"],
    }[fields]
    return tuple((letter, 4 if letter == "E" else count, text) for letter, count, text in parse(pattern.pattern))


def parse(pattern: str) -> tuple[Piece, ...]:
    """The pieces of a CLDR pattern."""
    pieces: list[Piece] = []
    for token_type, value in tokenize_pattern(pattern):
        if token_type == "field":
            letter, count = value
            pieces.append(({"L": "M", "c": "E"}.get(letter, letter), count, ""))
        else:
            pieces.append(("", 0, value))
    return tuple(pieces)


Names = Mapping[tuple[str, int], Mapping[int, str]]


@cache
def english(name: str) -> Names:
    """The names of months and weekdays, long (4 letters of the pattern) and short (fewer)."""
    locale = Locale.parse(name)
    months, days = locale.months["format"], locale.days["format"]
    return {
        ("M", 4): months["wide"],
        ("M", 3): months["abbreviated"],
        ("E", 4): days["wide"],
        ("E", 1): days["abbreviated"],
    }


@cache
def chinese() -> Names:
    """The Chinese names."""
    return english("zh")


# --------------------------------------------------------------------------------------------------------- writing


def write(pieces: tuple[Piece, ...], date: Fields, names: Names, draws: list[float] | None = None) -> str:
    """The text of a date; with `draws`, numbers from 0 to 1 of which seven are used, half of the time sloppily
    written."""
    sloppy = draws is not None and draws[0] >= CLEAN_SHARE
    dotted, other, other_pick, commas, spaces, upper = draws[1:7] if sloppy else (1.0,) * 6
    text = ""
    after_day = False
    for letter, count, literal in pieces:
        if (letter, count) in names:
            short = names[letter, count][date.month if letter == "M" else date.weekday]
            if count < 4 and sloppy:
                if other < 0.3 and short in SHORT_NAME_VARIANTS:
                    short = SHORT_NAME_VARIANTS[short][int(other_pick * len(SHORT_NAME_VARIANTS[short]))]
                if dotted < 0.4 and short != "May":
                    short += "."
            text += short
        elif letter:
            text += str({"y": date.year, "M": date.month, "d": date.day}[letter]).zfill(count)
        else:
            text += ordinal(date.day) + literal[2:] if after_day and literal.startswith("th") else literal
        after_day = letter == "d"
    return disturb(text, commas, spaces, upper) if sloppy else text


def disturb(text: str, commas: float, spaces: float, case: float) -> str:
    """Perhaps without commas or without the space after them, with a doubled space, in lower or upper case."""
    if commas < 0.4:
        text = text.replace(",", "")
    elif commas < 0.5:
        text = text.replace(", ", ",")
    if spaces < 0.15:
        text = text.replace(" ", "  ", 1)
    elif spaces < 0.2:
        text = "  ".join(text.rsplit(" ", 1))
    if case < 0.35:
        return text.lower()
    return text.upper() if case < 0.5 else text


def ordinal(day: int) -> str:
    """The end of an English ordinal: st, nd, rd or th."""
    return "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
