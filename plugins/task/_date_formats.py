"""How dates are written: the formats of CLDR and others, in English, perhaps sloppily, and in Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from babel import Locale
from babel.dates import tokenize_pattern

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
