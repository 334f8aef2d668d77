"""A part of the report of a comparison: text, tables and figures below a heading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddle_tfm.protocols.component import Component

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from paddle_tfm.tabular import Table


class Facts:
    """A comparison as a section sees it. Implemented by the engine.

    comparison: `.rows`, a variant each, the best first (`.variant`, `.mean` and `.spread` by metric, `.difference`,
        `.parameters`, `.seconds`); `.runs` (`.folder`, `.variant`, `.seed`, `.results`, `.metric(name)`); `.metric`,
        the one that decides; `.baseline`.
    groups: variant → its runs. recipes: variant → its resolved recipe, empty where it cannot be read.
    numbers: variant → the number of its colour (`paddle_tfm.plotting.line_style`, `paddle_tfm.pages.style.colour`).
    models, run_of: `models(run_of(variant))` is a run with its model, as `paddle_tfm.load_run` gives it; None where its
        checkpoint is missing.
    once: `once(function)` is `function(facts)`, computed the first time: for what takes long, and is asked for in
        `applies` and again for what is shown.
    """

    comparison: Any
    groups: Mapping[str, Sequence[Any]]
    recipes: Mapping[str, Mapping[str, Any]]
    numbers: Mapping[str, int]


class Section(Component):
    """A part of the report of a comparison. It reads finished runs and changes nothing of them.

    Givens: none; a section is made without arguments.
    Invariances: the same runs give the same section; what users wrote (names, texts) is shown as text.
    Raises: nothing where runs lack something: then `applies` says so. What it raises is reported, and it is left out.

    Example::

        from paddle_tfm.protocols import Section
        from paddle_tfm.tabular import Table, column

        class Speeds(Section):
            heading = "Speeds"
            summary = "target tokens per second of training"
            place = 450

            def tables(self, facts):
                rows = [{"variant": row.variant, "speed": row.tokens_per_second} for row in facts.comparison.rows]
                number = column("speed", "tokens/s", lambda value: f"{value:,.0f}", right=True)
                return {"speeds": Table([column("variant"), number], rows, "Target tokens per second of training")}
    """

    kind: ClassVar[str] = "section"
    heading: ClassVar[str] = ""
    """What stands above it."""
    summary: ClassVar[str] = ""
    """What is in it: a line beside the heading, by which a reader decides whether to open it."""
    folded: ClassVar[bool] = True
    """Whether it is shown only when a reader opens it. Of the engine's own the scores alone are not."""
    place: ClassVar[int] = 500
    """Where it stands on the page: after those of smaller numbers. Scores 100, claims 150, what was compared 200,
    learning curves 300, outputs 400, runs 700, how to do it again 800, for a paper 850."""
    slow: ClassVar[bool] = False
    """Whether it loads a model, or takes more than a second: only `paddle-tfm report --all` writes it then."""

    def applies(self, facts: Any) -> bool:
        """Whether these runs have what it shows. Where they do not, it is left out without a word."""
        return True

    def tables(self, facts: Any) -> Mapping[str, Table]:
        """name → table; written beside the page as NAME.csv and NAME.tex, the title as its caption."""
        return {}

    def figures(self, facts: Any) -> Mapping[str, Figure]:
        """name → matplotlib figure (`paddle_tfm.plotting.new_figure`); written beside the page as NAME.svg and
        NAME.pdf."""
        return {}

    def html(self, facts: Any) -> str:
        """What stands below the heading, as HTML without scripts and without other files; texts of users go through
        `html.escape`. By itself: all tables, then all figures."""
        from paddle_tfm.plotting import page_figure

        figures = [page_figure(figure) for figure in self.figures(facts).values()]
        return "\n".join([*(table.html() for table in self.tables(facts).values()), *figures])

    def text(self, facts: Any) -> Sequence[str]:
        """Lines for the terminal, below the table: none, or the few that are worth reading there."""
        return ()

    def data(self, facts: Any) -> Mapping[str, Any]:
        """What `comparison.json` holds of it under `sections`, by its name: numbers, strings, lists, mappings."""
        return {}
