"""What the engine's sections share: charts, each drawn on the page and for a paper from one description, notes and
tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from paddle_tfm.comparison.report.figures.line_chart import LineChart
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.pages import document
from paddle_tfm.protocols import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ChartedSection(Section):
    """A section that consists of charts, notes and tables."""

    def charts(self, facts: Facts) -> Mapping[str, LineChart]:
        """name → chart."""
        return {}

    def notes(self, facts: Facts) -> Sequence[str]:
        """What must be known to read them."""
        return ()

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """The charts, for a paper."""
        return {name: chart.figure() for name, chart in self.charts(facts).items()}

    def html(self, facts: Facts) -> str:
        """The charts with a key to their colours, the notes, the tables."""
        charts = list(self.charts(facts).values())
        drawn = "".join(chart.html() for chart in charts)
        drawn = f'<div class="charts">{drawn}</div>' if len(charts) > 1 else drawn
        tables = "".join(table.html() for table in self.tables(facts).values())
        return f"{_key(charts)}{drawn}{document.notes(self.notes(facts))}{tables}"


def _key(charts: Sequence[LineChart]) -> str:
    """Which colour is which name, in the order of the numbers."""
    numbers = {item.name: item.number for chart in charts for item in chart.series}
    if len(numbers) < 2:
        return ""
    items = "".join(
        f"<li>{document.named(numbers[name], name)}</li>" for name in sorted(numbers, key=numbers.__getitem__)
    )
    return f'<ul class="key">{items}</ul>'
