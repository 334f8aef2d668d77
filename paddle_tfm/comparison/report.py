"""A comparison as files: numbers for programs, a table for a paper's draft, a page and a figure for people."""

from __future__ import annotations

import base64
import math
import os
import re
import shlex
from difflib import SequenceMatcher
from html import escape
from pathlib import Path

from paddle_tfm import units
from paddle_tfm.comparison.figure import FAINT, INK, draw, human, image, split
from paddle_tfm.comparison.table import CONFIDENCE, Comparison, Difference, Result, Row, grouped
from paddle_tfm.files import json_text, write_whole
from paddle_tfm.predictions import is_right, predictions_file, read_undamaged_predictions

NOTES = (
    "“±” is the standard deviation (n − 1) over seeds: how far single runs scatter. One seed has none.",
    f"The difference is to the baseline, paired by seed, with its {CONFIDENCE:.0%} interval (Student's t); it is called "
    "better or worse only where the interval excludes 0. Intervals are not widened for many variants.",
    "Tokens are target tokens of training, per second; the time is one run's training. Diverged runs are in no mean.",
)
TAIL = 2000  # characters of a text that a page shows


def write(comparison: Comparison) -> dict[str, Path]:
    """Write `comparison.json`, `.md`, `.html` and `.png` into the comparison's folder. Returns where each is.

    The page is one file that needs no other, and no network.
    """
    folder = Path(comparison.folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = {"json": "json", "markdown": "md", "page": "html", "figure": "png"}
    files = {what: folder / f"comparison.{ending}" for what, ending in names.items()}
    figure = draw(comparison)
    png, svg = image(figure, "png"), image(figure, "svg").decode("utf-8")
    write_whole(files["json"], json_text(comparison.data()))
    write_whole(files["markdown"], markdown(comparison))
    write_whole(files["page"], page(comparison, png, svg))
    write_whole(files["figure"], png)
    return files


# ------------------------------------------------------------------------------------------------------------ verdict


def verdict(comparison: Comparison) -> str:
    """One sentence: which variant is best, and whether the seeds suffice to say so."""
    best, metric = comparison.rows[0], comparison.metric
    others = [row for row in comparison.rows if row.variant != comparison.baseline]
    value = f"{human(metric)} {comparison.text(metric, best.mean[metric])}"
    if split(comparison) == "validation":
        value += " on the validation split"
    if math.isnan(best.mean[metric]):
        lost = all(run.results.get("diverged") for run in comparison.runs)
        return f"No variant is best: {'every run diverged' if lost else f'no run has a value of {human(metric)}'}."
    if comparison.corpora > 1:
        return f"The runs are of {comparison.corpora} corpora: scores on different texts are not compared."
    if not others:
        text = f"“{best.variant}” is the only variant here: {value} over {_count(len(best.seeds), 'seed')}"
    elif best.variant == comparison.baseline:
        text = f"The baseline “{best.variant}” has the best mean ({value}){_standing(others)}"
    else:
        text = f"“{best.variant}” has the best mean ({value}) {_against(comparison, best.difference)}"
    if best.diverged:
        text += f"; {best.diverged} of its {len(best.seeds)} runs diverged and are not in that mean"
    return text + "."


def _standing(others: list[Row]) -> str:
    """How the others stand to a baseline that leads."""
    found = [row.difference for row in others if row.difference]
    count = {word: sum(item.verdict == word for item in found) for word in ("worse", "equal", "better")}
    unclear = len(others) - sum(count.values())
    pairs = max((item.pairs for item in found if item.verdict == "undetermined"), default=0)
    seeds = _count(pairs, "seed") if pairs else "no seed in common"
    if len(others) == 1:
        if unclear:
            return f", but {seeds} cannot tell these apart" if pairs else f", but {seeds} tells these apart"
        return f"; the other is {found[0].verdict}, paired over {_count(found[0].pairs, 'seed')}"
    parts = [f"{number} {'is' if number == 1 else 'are'} {word}" for word, number in count.items() if number]
    parts += [f"{unclear} cannot be told apart from it by {seeds}"] if unclear else []
    return f"; of {len(others)} others, {', '.join(parts)}"


def _against(comparison: Comparison, found: Difference | None) -> str:
    """How the leader stands to the baseline."""
    base = f"the baseline “{comparison.baseline}”"
    if found is None:
        return f"but shares no finished seed with {base}: nothing tells these apart"
    seeds = _count(found.pairs, "seed")
    if found.verdict == "undetermined":
        return f"but {seeds} cannot tell these apart: {change(comparison, found)} against {base}"
    if found.verdict == "equal":
        return f"and equals {base} on each of {seeds}"
    return f"and is {found.verdict} than {base}: {change(comparison, found)}, {seeds}"


def change(comparison: Comparison, found: Difference) -> str:
    """A difference with its interval: `+1.2 points (95%: −0.3 to +2.7)`."""
    unit = comparison.unit(comparison.metric)
    mean = units.difference(found.mean, unit)
    if found.half_width is None:
        return f"{mean}, no interval from {_count(found.pairs, 'seed')}"
    low, high = (units.signed(found.mean + part, unit) for part in (-found.half_width, found.half_width))
    return f"{mean} ({CONFIDENCE:.0%}: {low} to {high})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


# -------------------------------------------------------------------------------------------------------------- table


def _header(comparison: Comparison) -> list[str]:
    directions = {"loss": False}
    for run in comparison.runs:
        directions |= run.results["directions"]
    arrows = {True: "\u00a0↑", False: "\u00a0↓", None: ""}
    metrics = [f"{human(name)}{arrows[directions.get(name)]}" for name in comparison.shown()]
    return ["variant", "seeds", metrics[0], "difference", *metrics[1:], "parameters", "tokens/s", "time", "diverged"]


def _cells(comparison: Comparison, row: Row) -> list[str]:
    """What `_header` announces, as plain text."""
    metrics = []
    for name in comparison.shown():
        metrics.append(around(comparison, name, row))
    if row.variant == comparison.baseline:
        against = "baseline" if len(comparison.rows) > 1 else "–"
    else:
        found = row.difference
        apart = "other texts" if comparison.corpora > 1 else "no finished seed in common"
        against = f"{change(comparison, found)} {found.verdict}" if found else apart
    time = f"{round(row.seconds) // 60}:{round(row.seconds) % 60:02}"
    seeds = ", ".join(map(str, row.seeds)) if len(row.seeds) <= 5 else f"{len(row.seeds)} seeds"
    speed = f"{row.tokens_per_second:,.0f}"
    lost = f"{row.diverged} of {len(row.seeds)}" if row.diverged else "0"
    return [row.variant, seeds, metrics[0], against, *metrics[1:], f"{row.parameters:,}", speed, time, lost]


def around(comparison: Comparison, name: str, row: Row) -> str:
    """`mean ± spread` of a variant's metric, both to the same digit; the mean alone where there is no spread."""
    return units.plus_minus(row.mean.get(name), row.spread.get(name), comparison.unit(name))


def markdown(comparison: Comparison) -> str:
    """The table, the verdict above it and what its columns mean below."""

    def line(cells: list[str]) -> str:
        return f"| {' | '.join(_plain(cell) for cell in cells)} |"

    header = _header(comparison)
    lines = [f"# {_plain(comparison.name)}", "", _plain(verdict(comparison)), "", line(header)]
    lines += [f"|{'|'.join([':---', *['---:'] * (len(header) - 1)])}|"]
    lines += [line(_cells(comparison, row)) for row in comparison.rows]
    lines += ["", *(f"- {_plain(note)}" for note in _notes(comparison)), "", "![Curves and values](comparison.png)", ""]
    return "\n".join(lines)


def _notes(comparison: Comparison) -> list[str]:
    """What the columns mean, and what must be told beside a score for others to compare theirs with it."""
    return [*NOTES, *(f"{human(name)}: {text}" for name, text in comparison.signatures.items())]


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*|<>\[\]#])", r"\\\1", " ".join(text.split()))


# ------------------------------------------------------------------------------------------------------------ samples


def samples(comparison: Comparison, right: int = 3, wrong: int = 3) -> tuple[list[dict], list[dict]]:
    """Right and wrong predictions of the best variant's first seed; wrong ones of the next variants if it has none.

    Each has `variant`, `seed`, `right`, `source`, `reference`, `hypothesis` and `score`.
    """
    groups = grouped(comparison.runs)
    good: list[dict] | None = None
    for row in comparison.rows:
        for run in sorted(groups[row.variant], key=lambda run: run.seed):
            found = [] if run.results.get("diverged") else _predictions(run, row.variant)
            if found:
                break
        else:
            continue
        if good is None:
            good = [item for item in found if item["right"]][:right]
        if bad := [item for item in found if not item["right"]][:wrong]:
            return good, bad
    return good or [], []


def _predictions(run: Result, variant: str) -> list[dict]:
    """The predictions of a run; one that is damaged is left out."""
    return [
        {
            "variant": variant,
            "seed": run.seed,
            "right": is_right(prediction),
            "source": prediction.source,
            "reference": prediction.reference,
            "hypothesis": prediction.hypothesis,
            "score": prediction.score,
        }
        for prediction in read_undamaged_predictions(predictions_file(run.folder))
    ]


# --------------------------------------------------------------------------------------------------------------- page


def page(comparison: Comparison, png: bytes, svg: str) -> str:
    """The whole comparison on one page; the figure as `svg`, or as `png` where that is smaller."""
    recipes = list(dict.fromkeys(run.results["recipe"] for run in comparison.runs))
    counts = f"{_count(len(comparison.rows), 'variant')}, {_count(len(comparison.runs), 'run')}"
    facts = f"{'recipe' if len(recipes) == 1 else 'recipes'} {', '.join(recipes)} · {counts} · decided by "
    facts += f"{human(comparison.metric)} on the {split(comparison)} split"
    top = _above(comparison)
    notes = "".join(f"<li>{escape(note)}</li>" for note in _notes(comparison))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(comparison.name)} · comparison</title>
<style>{CSS}</style>
</head>
<body>
<main>
<header>
<p class="facts">{escape(facts)}</p>
<h1 dir="auto">{escape(comparison.name)}</h1>
<p class="verdict">{escape(verdict(comparison))}</p>
</header>
<section>
<h2>Variants</h2>
{_table(comparison)}
<ul class="notes">{notes}</ul>
</section>
<section>
<h2>Curves and values</h2>
{_figure(comparison, png, svg)}
</section>
<section>
<h2>Predictions</h2>
{_samples(comparison)}
</section>
<section>
<h2>Runs</h2>
{_runs(comparison, top)}
<p>Every curve, run beside run: <code>{escape(f"paddle-tfm board {shlex.quote(str(top))}")}</code></p>
</section>
</main>
</body>
</html>
"""


def _table(comparison: Comparison) -> str:
    header = "".join(f'<th scope="col">{escape(name)}</th>' for name in _header(comparison))
    body = ""
    for row in comparison.rows:
        first, seeds, value, against, *rest = _cells(comparison, row)
        if found := row.difference:
            value_of, interval = escape(change(comparison, found)).split(" (" if found.half_width is not None else ", ")
            against = f'{value_of} <b class="{found.verdict}">{found.verdict}</b>'
            against += f"<small>{interval.rstrip(')')}</small>"
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        body += f'<tr><th scope="row"><bdi>{escape(first)}</bdi></th><td>{escape(seeds)}</td>'
        body += f'<td class="deciding">{escape(value)}</td><td>{against}</td>{cells}</tr>\n'
    return f'<div class="wide"><table>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>'


def _figure(comparison: Comparison, png: bytes, svg: str) -> str:
    text = f"Validation {human(comparison.metric)} against training steps, and its value at the end, for each variant"
    encoded = base64.b64encode(png).decode("ascii")
    drawing = re.sub(r"<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL).strip()
    if len(encoded) < len(drawing.encode("utf-8")):
        inner = f'<img alt="{escape(text)}" src="data:image/png;base64,{encoded}">'
    else:
        drawing = drawing.replace(f": {INK}", ": var(--ink)").replace(f": {FAINT}", ": var(--line)")
        inner = drawing.replace("<svg", f'<svg role="img" aria-label="{escape(text)}"', 1)
    return f'<figure class="wide">{inner}</figure>'


def _samples(comparison: Comparison) -> str:
    right, wrong = samples(comparison)
    if not right and not wrong:
        return "<p>None were kept: there is no test split, or no run came to its end.</p>"
    parts = []
    for name, found in (("Right", right), ("Wrong", wrong)):
        whose = f" · {found[0]['variant']}, seed {found[0]['seed']}" if found else ""
        if found and right and found[0]["variant"] != right[0]["variant"]:
            whose += f" ({right[0]['variant']} has none)"
        parts.append(f'<h3 class="{name.lower()}">{name}<small dir="auto">{escape(whose)}</small></h3>')
        cards = "".join(map(_sample, found))
        parts.append(f'<div class="cards">{cards}</div>' if found else f"<p>No prediction was {name.lower()}.</p>")
    return "\n".join(parts)


def _sample(item: dict) -> str:
    wanted, written = _marked(item["reference"], item["hypothesis"])
    rows = [("source", escape(item["source"][:TAIL])), ("wanted", wanted)]
    rows += [] if item["right"] else [("written", written)]
    rows.append(("score", f"{item['score']:.4g}".replace("-", "−")))
    cells = "".join(f'<dt>{name}</dt><dd dir="auto">{text}</dd>' for name, text in rows)
    return f"<dl>{cells}</dl>\n"


def _marked(reference: str, hypothesis: str) -> tuple[str, str]:
    """Both texts as HTML, the characters in which they differ marked."""
    first, second = reference[:TAIL], hypothesis[:TAIL]
    left, right = "", ""
    for kind, i, j, k, m in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        a, b = escape(first[i:j]), escape(second[k:m])
        left += a if kind == "equal" or not a else f'<mark class="missing">{a}</mark>'
        right += b if kind == "equal" or not b else f'<mark class="extra">{b}</mark>'
    return left, right or "<i>nothing</i>"


def _runs(comparison: Comparison, top: Path) -> str:
    rows = ""
    for variant, group in grouped(comparison.runs).items():
        for run in sorted(group, key=lambda run: run.seed):
            results = run.results
            end = f"diverged: {results['diverged']}" if results.get("diverged") else "finished"
            cells = [str(run.seed), f"{results['steps']:,}", f"{results['best_step']:,}", end]
            rows += f'<tr><th scope="row"><bdi>{escape(variant)}</bdi></th>'
            rows += "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            rows += f'<td class="path"><code>{escape(os.path.relpath(run.folder, top))}</code></td></tr>\n'
    names = ("variant", "seed", "steps", "best step", "end", f"folder in {top}")
    header = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    return f'<div class="wide"><table>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>'


def _above(comparison: Comparison) -> Path:
    """The folder that all runs are in, as short as the user would type it."""
    top = Path(comparison.folder).resolve()
    folders = [run.folder.resolve() for run in comparison.runs]
    if not all(folder.is_relative_to(top) for folder in folders):
        top = Path(os.path.commonpath(folders))
    return top.relative_to(Path.cwd()) if top.is_relative_to(Path.cwd()) else top


CSS = """
:root { --ink: #24292f; --soft: #59636e; --line: #d8dee4; --paper: #ffffff; --card: #f6f8fa; --good: #116c37;
  --bad: #b42318; --good-paper: #dcf5e4; --bad-paper: #fde4e1; --accent: #0b62a8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa5b1; --line: #39424d; --paper: #0f141a;
  --card: #181f27; --good: #6ddb95; --bad: #ff9d92; --good-paper: #123d23; --bad-paper: #4f1d19; --accent: #6cb6ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5; font: 16px/1.5 system-ui, -apple-system,
  "Segoe UI", Roboto, "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif; }
main { max-width: 84rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { margin: 0; font-size: 2.1rem; line-height: 1.2; letter-spacing: -0.02em; overflow-wrap: anywhere; }
h2 { margin: 2.75rem 0 0.75rem; font-size: 1.2rem; }
h3 { margin: 1.5rem 0 0.5rem; font-size: 1rem; }
h3 small { color: var(--soft); font-weight: 400; }
.facts { margin: 0 0 0.25rem; color: var(--soft); font-size: 0.9rem; }
.verdict { margin: 1rem 0 0; padding: 0.8rem 1rem; border-left: 4px solid var(--accent); border-radius: 0 8px 8px 0;
  background: var(--card); font-size: 1.1rem; max-width: 60rem; overflow-wrap: anywhere; }
.wide { margin: 0; overflow-x: auto; border: 1px solid var(--line); border-radius: 10px; }
table { width: 100%; border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.5rem 0.7rem; text-align: right; white-space: nowrap; border-top: 1px solid var(--line); }
thead th { border-top: 0; vertical-align: bottom; white-space: normal; background: var(--card); color: var(--soft); font-weight: 600; }
th:first-child { position: sticky; left: 0; background: var(--paper); text-align: left; white-space: normal;
  min-width: 8rem; max-width: 18rem; overflow-wrap: anywhere; }
thead th:first-child { background: var(--card); }
.deciding { font-weight: 650; }
td b { display: inline-block; margin-left: 0.2rem; padding: 0 0.5rem; border-radius: 1rem; font-weight: 600;
  background: var(--card); color: var(--soft); }
td b.better { background: var(--good-paper); color: var(--good); }
td b.worse { background: var(--bad-paper); color: var(--bad); }
td small { display: block; color: var(--soft); }
td.path { text-align: left; }
.notes { margin: 0.75rem 0 0; padding-left: 1.1rem; color: var(--soft); font-size: 0.85rem; }
figure { padding: 0.9rem; }
figure svg, figure img { display: block; width: 100%; min-width: 44rem; height: auto; }
figure img { background: #ffffff; }
figure svg text { font-family: inherit !important; }
h3.right::before { content: "✓ "; color: var(--good); }
h3.wrong::before { content: "✗ "; color: var(--bad); }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); gap: 0.7rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.1rem 1rem; margin: 0; padding: 0.7rem 1rem;
  align-content: start; border-radius: 10px; background: var(--card); }
dt { color: var(--soft); font-size: 0.85rem; line-height: 1.6rem; }
dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; }
mark { border-radius: 3px; color: inherit; }
mark.missing { background: var(--good-paper); box-shadow: inset 0 -2px var(--good); }
mark.extra { background: var(--bad-paper); box-shadow: inset 0 -2px var(--bad); }
code { padding: 0.1rem 0.35rem; border-radius: 5px; background: var(--card); font: 0.88em ui-monospace, Menlo, Consolas,
  monospace; }
@media (max-width: 40rem) { main { padding: 1.5rem 0.9rem 3rem; } h1 { font-size: 1.6rem; } .verdict { font-size: 1rem; }
  th:first-child { max-width: 9rem; } }
@media print { .wide { overflow: visible; } }
"""
