"""What `paddle-tfm bench` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paddle_tfm.bench.page import JOB_TITLES, how, times_as_fast
from paddle_tfm.bench.sides import KINDS
from paddle_tfm.cli.common import console
from paddle_tfm.cli.tables import print_table as print_fitting
from paddle_tfm.tabular import ESSENTIAL, Table, column

# Headings of columns by how much they matter; the ratio is what a table is read for.
IMPORTANCE = {
    "ours is": ESSENTIAL,
    "ms": 90,
    "seconds": 90,
    "same output": 80,
    "fastest rounds": 70,
    "lowest – highest": 60,
}


def print_table(title: str, words: Sequence[str], numbers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; `words` and `numbers` are the headings of its columns, aligned left and right."""
    headings = [*words, *numbers]
    columns = [
        column(heading, importance=IMPORTANCE.get(heading, ESSENTIAL if i < len(words) else 50), right=i >= len(words))
        for i, heading in enumerate(headings)
    ]
    print_fitting(Table(columns, [dict(zip(headings, row)) for row in rows], title), "in --json FILE")


def facts(result: Mapping, growing: str = "") -> str:
    """What was measured, without the quantity that grows."""
    sizes = result["sizes"]
    parts = {
        "": f"d_model {sizes['d_model']}, {sizes['encoder_layers']}+{sizes['decoder_layers']} layers",
        "vocabulary": f"vocabularies {sizes['source_vocabulary']:,} and {sizes['target_vocabulary']:,}",
        "batch": f"batches of {sizes['max_tokens']:,} tokens",
        "dropout": f"dropout {sizes['dropout']}",
    }
    task = result["task"]  # as the recipe writes it: a name, or a mapping
    return f"One training step of {task if isinstance(task, str) else task['name']}: " + ", ".join(
        fact for name, fact in parts.items() if not name or name != growing
    )


def growth_table(what: str, several: Sequence[Mapping]) -> None:
    """The table of a growth: a row for each size and side."""
    rows = []
    for result in several:
        for i, side in enumerate(result["sides"]):
            rows.append(["" if i else f"{result[what]:,}", *_cells(result, side), _memory(result["sides"][side])])
    numbers = ["ms", "lowest – highest", "target tokens/s", "ours is", "peak memory (MiB)"]
    print_table(facts(several[0], what), [what, "side"], numbers, rows)


def step_table(result: Mapping) -> None:
    """The table of training steps, and how each side computes."""
    rows = []
    for side, figures in result["sides"].items():
        ratio = result["ratio"].get(side)
        rows.append(
            [*_cells(result, side), f"{ratio['undisturbed']:.2f} ×" if ratio else "", _memory(figures)],
        )
    numbers = ["ms", "lowest – highest", "target tokens/s", "ours is", "fastest rounds", "peak memory (MiB)"]
    print_table(facts(result), ["side"], numbers, rows)
    _settings(result["sides"])
    first = result["first_loss"]
    losses = ", ".join(f"{first[side]:.6f} {side}" for side in result["sides"])
    difference = f"largest difference in float32 {first['difference']:.1e}"
    console().print(f"first loss, weights copied and dropout off: {losses} ({difference})")


def decoding_table(result: Mapping, job: str) -> None:
    """The table of one decoding job, and how each side computes."""
    figures = result["jobs"][job]
    rows = []
    for side, times in figures["sides"].items():
        ratio = figures["ratio"].get(side)
        rows.append(
            [
                KINDS[side].title,
                f"{times['median']:,.2f}",
                f"{times['low']:,.2f} – {times['high']:,.2f}",
                f"{times['sentences_per_second']:,.1f}",
                times_as_fast(ratio),
                f"{figures['same'][side]:.1%}" if ratio else "",
            ]
        )
    title = f"{figures['sentences']:,} sentences, {JOB_TITLES[job].format(**result)}"
    numbers = ["seconds", "lowest – highest", "sentences/s", "ours is", "same output"]
    print_table(title, ["side"], numbers, rows)
    _settings(figures["sides"])


def _settings(sides: Mapping[str, Mapping]) -> None:
    """A line for each side: how it computes."""
    for side, figures in sides.items():
        console().print(f"{side}: {how(figures)}", soft_wrap=True)


def _cells(result: Mapping, side: str) -> list[str]:
    """Side, milliseconds, their range, tokens per second, and how many times as fast ours is."""
    times = result["sides"][side]
    return [
        KINDS[side].title,
        f"{times['median_ms']:,.0f}",
        f"{times['low_ms']:,.0f} – {times['high_ms']:,.0f}",
        f"{times['tokens_per_second']:,.0f}",
        times_as_fast(result["ratio"].get(side)),
    ]


def _memory(times: Mapping) -> str:
    """The peak memory of the process; in brackets, the memory before its first step."""
    return "" if times["peak_mib"] is None else f"{times['peak_mib']:,} ({times['loaded_mib']:,})"
