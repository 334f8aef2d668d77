"""English dates in, Chinese dates out."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Iterator
from functools import cached_property

from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.protocols import SPLITS, Example, Task
from paddle_tfm.randomness import digest, generator
from paddle_tfm.validators import ascending, between, positive
from paddle_tfm_plugins.task._date_formats import Fields, chinese, english, formats, write


class Dates(Task):
    """English dates in some fifty formats, sloppily written, to Chinese: "tues., 5 march 2024" → "2024年3月5日星期二".

    Formats and names are those of CLDR, by way of Babel (another Babel release may bring other formats), and those
    of `_date_formats.INFORMAL_PATTERNS`. The target holds exactly the fields that the source states: nothing is to be
    computed.

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
        dates = self._dates[split]
        usable = [form for form in formats() if dates[form.key]]
        rng = generator(self.data_seed, "dates", split)
        sources: set[str] = set()
        tries = 0
        while len(sources) < self.sizes[split]:
            tries += 1
            if tries > 1000 + 5 * self.sizes[split]:
                sentence = _(
                    "task 'dates' finds only {number} sources for the split '{split}' in the years {first} to "
                    "{last}; ask for fewer than {size}, or for more years"
                )
                raise UserError(
                    sentence.format(
                        number=len(sources),
                        split=split,
                        first=self.years[0],
                        last=self.years[-1],
                        size=self.sizes[split],
                    )
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
