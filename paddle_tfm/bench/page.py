"""The figures of a benchmark as Markdown: the tables of docs/performance.md, and the lines around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from paddle_tfm.bench.sides import JOBS, KINDS
from paddle_tfm.errors import UserError
from paddle_tfm.files import write_named

BEGIN, END = "<!-- paddle-tfm bench --size all -->", "<!-- end of the table -->"
STEP_HEADINGS = ("size", "side", "ms a step", "ours is", "fastest rounds", "most memory, MiB", "how it computes")
SEARCH_HEADINGS = ("job", "side", "seconds", "sentences/s", "ours is", "same output", "how it computes")
JOB_TITLES = {"beam": "beam {beam}, in batches", "single": "greedy, one sentence at a time"}


def how(figures: Mapping) -> str:
    """How a side computes, as a cell: its processes or threads, its precision, the variables and settings that
    differ from its library as it comes."""
    threads, processes = figures["threads"], figures["processes"]
    parts = [f"{processes} processes" if processes > 1 else f"{threads} thread{'s' if threads > 1 else ''}"]
    parts.append(figures["precision"])
    parts += [f"{name}={value}" for name, value in figures["variables"].items()]
    parts += [figures["settings"]] if figures["settings"] else []
    return ", ".join(parts)


def times_as_fast(ratio: Mapping | None) -> str:
    """How many times as fast ours is: the median, and the lowest and highest of the rounds."""
    return f"{ratio['median']:.2f} × ({ratio['low']:.2f} – {ratio['high']:.2f})" if ratio else ""


def step_rows(results: Iterable[Mapping]) -> list[list[str]]:
    """A row for each size and side, from what `measure_sizes` returns."""
    rows = []
    for result in results:
        for side, figures in result["sides"].items():
            ratio = result["ratio"].get(side)
            undisturbed = f"{ratio['undisturbed']:.2f} ×" if ratio else ""
            memory = "" if figures["peak_mib"] is None else f"{figures['peak_mib']:,}"
            cells = [f"{figures['median_ms']:,.0f}", times_as_fast(ratio), undisturbed, memory, how(figures)]
            rows.append([result["size"], KINDS[side].title, *cells])
    return rows


def search_rows(result: Mapping) -> list[list[str]]:
    """A row for each job and side, from what `measure_decoding` returns."""
    rows = []
    for job in JOBS:
        figures = result["jobs"][job]
        title = f"{JOB_TITLES[job].format(**result)}, {figures['sentences']:,} sentences"
        for side, times in figures["sides"].items():
            ratio = figures["ratio"].get(side)
            cells = [f"{times['median']:,.2f}", f"{times['sentences_per_second']:,.1f}", times_as_fast(ratio)]
            same = f"{figures['same'][side]:.1%}" if ratio else ""
            rows.append([title, KINDS[side].title, *cells, same, how(times)])
    return rows


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def setting(result: Mapping) -> str:
    """Two sentences: what was measured on, and with what."""
    machine, versions = result["machine"], ", ".join(f"{name} {text}" for name, text in result["versions"].items())
    load = "" if machine["load_before"] is None else f", load {machine['load_before']} before"
    return (
        f"{machine['processor']}, {machine['cores']} cores{load}; {versions}. {result['rounds']} rounds in turn, "
        "median (lowest – highest)."
    )


def markdown(steps: Sequence[Mapping], search: Mapping | None = None) -> str:
    """The whole block: training steps at every size, and decoding where there is some."""
    first = steps[0]
    texts = f"One training step, batches of {first['sizes']['max_tokens']:,} tokens of {first['task']['name']}"
    parts = [f"{texts}. {setting(first)}", table(STEP_HEADINGS, step_rows(steps))]
    if search is not None:
        parts += [f"Decoding. {setting(search)}", table(SEARCH_HEADINGS, search_rows(search))]
    return "\n\n".join(parts) + "\n"


def around(file: Path) -> tuple[str, str]:
    """What stands before and after the place for the tables, with its marks; nothing if there is no such file yet.

    Raises:
        UserError: the file has no such place.
    """
    if not file.exists():
        return "", ""
    before, begin, rest = file.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(f"{file} exists, and has no lines '{BEGIN}' and '{END}' to write between; name another file")
    return f"{before}{BEGIN}\n\n", f"\n{END}{after}"


def write(file: Path, text: str) -> None:
    """Write `text` to `file`: between `BEGIN` and `END`, if the file exists.

    Raises:
        UserError: it exists and has no such place.
    """
    before, after = around(file)
    write_named(file, f"{before}{text}{after}")
