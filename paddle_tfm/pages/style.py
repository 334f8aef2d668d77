"""How pages look: one accent colour, light and dark, at any width and on paper."""

from paddle_tfm.colours import COLOURS

# A text stands out from the page by 4.5:1 or more in both schemes (WCAG 1.4.3).
LIGHT = """--ink: #1f2328; --soft: #57606a; --line: #d4dae1; --paper: #ffffff; --card: #f5f7f9; --accent: #0b5cad;
  --good: #116c37; --bad: #b42318; --good-paper: #def5e6; --bad-paper: #fde7e4;"""
DARK = """--ink: #e6edf3; --soft: #a3aebb; --line: #343d48; --paper: #0e1318; --card: #171e26; --accent: #71b7ff;
  --good: #6ddb95; --bad: #ff9d92; --good-paper: #123d23; --bad-paper: #4f1d19;"""
NUM_SERIES = 32  # lines that a checkbox can hide
NUM_LAYERS = 24  # whose maps a choice of one can show

BASE = """
.dash1 .line { stroke-dasharray: 7 3; } .dash2 .line { stroke-dasharray: 2 3; }
.dash3 .line { stroke-dasharray: 8 3 2 3; }
*, *::before, *::after { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI",
  Roboto, "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif; }
.page { max-width: 78rem; margin: 0 auto; padding: 2.5rem 1.5rem 5rem; }
a { color: var(--accent); text-underline-offset: 0.15em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; border-radius: 2px; }
.skip { position: absolute; left: -100rem; top: 0; padding: 0.5rem 1rem; background: var(--paper); z-index: 2; }
.skip:focus { left: 0; }
h1 { margin: 0; font-size: 2.2rem; font-weight: 650; line-height: 1.15; letter-spacing: -0.02em;
  overflow-wrap: anywhere; }
h2 { margin: 0 0 1rem; font-size: 1.3rem; font-weight: 650; letter-spacing: -0.01em; }
h3 { margin: 2rem 0 0.6rem; font-size: 1rem; font-weight: 650; }
p { margin: 0 0 0.8rem; max-width: 46rem; overflow-wrap: anywhere; }
.kind, .note, figcaption, caption, .below { color: var(--soft); font-size: 0.875rem; }
.kind { margin: 0 0 0.3rem; }
.note { margin: 0.8rem 0 0; }
.verdict { margin: 1.1rem 0 0; padding-left: 1rem; border-left: 4px solid var(--accent); font-size: 1.3rem;
  font-weight: 500; line-height: 1.4; max-width: 50rem; }
.question { margin: 0.8rem 0 0; color: var(--soft); }
.compared { margin: 0.8rem 0 0; }
section { margin: 2.5rem 0; scroll-margin-top: 1rem; }
section:not([id]) { margin: 0; }
details { border-top: 1px solid var(--line); }
summary { display: grid; grid-template-columns: 1rem 16rem minmax(0, 1fr); gap: 0 0.5rem; align-items: baseline;
  padding: 0.6rem 0; cursor: pointer; }
summary::before { content: "▸"; color: var(--accent); } [open] > summary::before { content: "▾"; }
summary:hover { background: var(--card); }
summary :is(h2, h3) { margin: 0; font-size: 1.05rem; }
summary span { color: var(--soft); font-size: 0.9rem; }
.note + details { margin-top: 1rem; }
.within { padding: 0.6rem 0 2rem; scroll-margin-top: 4rem; }
bdi, dd, td.text, tbody th { overflow-wrap: anywhere; }
td.number { overflow-wrap: normal; }
code { font: 0.9em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
pre.command { margin: 0 0 0.4rem; padding: 0.5rem 0.8rem; border-radius: 6px; background: var(--card);
  white-space: pre-wrap; overflow-wrap: anywhere; }
pre.command span { white-space: nowrap; }

.facts { margin: 0; }
.facts > div { display: grid; grid-template-columns: 9rem minmax(0, 1fr); gap: 0 1.5rem; padding: 0.55rem 0;
  border-top: 1px solid var(--line); }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; }
.facts dd > :last-child { margin-bottom: 0; }
.pairs { display: grid; grid-template-columns: fit-content(50%) minmax(0, 1fr); gap: 0.15rem 0.8rem; margin: 0;
  padding: 0; list-style: none; }
.pairs li { display: contents; }
.pairs span { overflow-wrap: anywhere; } .pairs span:only-child { grid-column: 1 / -1; }
.pairs span + span::before { content: "→ "; color: var(--soft); }

table { width: 100%; border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
caption { padding-bottom: 0.4rem; text-align: left; }
th, td { padding: 0.5rem 0.75rem 0.5rem 0; border-top: 1px solid var(--line); text-align: right; vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
thead th { border-top: 0; color: var(--soft); font-weight: 500; vertical-align: bottom; }
tbody th { font-weight: 500; }
th.text, td.text, tbody th { text-align: left; }
td .same { color: var(--soft); }

.swatch { display: inline-block; width: 0.7rem; height: 0.7rem; margin-right: 0.5rem; border-radius: 50%;
  background: var(--c); print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.badge { display: inline-block; padding: 0 0.55rem; border-radius: 1rem; background: var(--card); color: var(--soft);
  font-size: 0.85rem; font-weight: 600; white-space: nowrap; }
.badge.better { background: var(--good-paper); color: var(--good); }
.badge.worse { background: var(--bad-paper); color: var(--bad); }

.results { display: grid; grid-template-columns: minmax(7rem, max-content) max-content minmax(10rem, 1fr) max-content;
  font-variant-numeric: tabular-nums; }
.results > [role="row"], .results > .scale { display: grid; grid-column: 1 / -1; grid-template-columns: subgrid;
  align-items: center; gap: 0 1.25rem; border-top: 1px solid var(--line); }
.results > .head { border-top: 0; color: var(--soft); font-size: 0.875rem; padding-bottom: 0.3rem; }
.results .name { max-width: 16rem; font-weight: 600; overflow-wrap: anywhere; }
.results .name small, .results .against small { display: block; color: var(--soft); font-weight: 400; }
.results .name small { padding-left: 1.2rem; }
.results .score { font-weight: 600; text-align: right; white-space: nowrap; }
.results .score small { color: var(--soft); font-weight: 400; }
.results .against { padding: 0.5rem 0; }
.results .against span { white-space: nowrap; }
.results svg { display: block; width: 100%; height: 3.4rem; overflow: visible; }
.results .scale { border-top: 0; }
.results .scale > div { grid-column: 3; }
.scale p { margin: 0; text-align: center; }
svg path { fill: none; stroke: var(--c, var(--line)); vector-effect: non-scaling-stroke; }
svg .grid { stroke: var(--line); stroke-width: 1px; }
svg .line { stroke-width: 2px; stroke-linejoin: round; }
svg .band { fill: var(--c); fill-opacity: 0.16; stroke: none; }
svg .dot { stroke-width: 7px; stroke-linecap: round; }
svg .spot { stroke-width: 12px; stroke-linecap: round; stroke-opacity: 0; }
svg .seed { stroke-width: 6px; stroke-linecap: round; stroke-opacity: 0.55; }
svg .mean { stroke-width: 12px; stroke-linecap: round; }
svg .interval { stroke-width: 2.5px; }
svg .base { stroke: var(--soft); stroke-width: 1.5px; stroke-dasharray: 4 4; }
.key { display: flex; flex-wrap: wrap; gap: 0.2rem 1.4rem; margin: 0.8rem 0 0; padding: 0; list-style: none;
  color: var(--soft); font-size: 0.875rem; }

.key + figure, .key + .charts, .note + table { margin-top: 0.8rem; }
:is(table, figure, .charts) + table { margin-top: 1.4rem; }

fieldset { display: flex; flex-wrap: wrap; align-items: center; gap: 0.3rem 1.1rem; min-width: 0; margin: 0 0 0.6rem;
  padding: 0; border: 0; font-size: 0.9rem; }
legend { float: left; padding: 0; color: var(--soft); }
fieldset label { display: inline-flex; align-items: center; gap: 0.4rem; padding: 0.15rem 0; cursor: pointer;
  overflow-wrap: anywhere; }
fieldset .swatch { flex: none; margin: 0; }
input { flex: none; margin: 0; width: 1rem; height: 1rem; accent-color: var(--accent); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1.5rem 2.5rem; }
.curves:has(#x-steps:checked) .by:not(.steps), .curves:has(#x-tokens:checked) .by:not(.tokens),
.curves:has(#x-seconds:checked) .by:not(.seconds) { display: none; }
figure { margin: 0; min-width: 0; }
figcaption { margin-bottom: 0.6rem; }
.plot { position: relative; margin: 0 0.5rem 0 3.4rem; }
.plot > svg { display: block; width: 100%; height: 17rem; overflow: visible; }
.ylabels, .xlabels { color: var(--soft); font-size: 0.8rem; font-variant-numeric: tabular-nums; }
.ylabels { position: absolute; left: -3.4rem; top: 0; width: 3rem; height: 17rem; text-align: right; }
.ylabels span { position: absolute; right: 0; transform: translateY(50%); line-height: 1; white-space: nowrap; }
.xlabels { position: relative; height: 1.5rem; }
.xlabels span { position: absolute; top: 0.35rem; transform: translateX(-50%); line-height: 1; white-space: nowrap; }
.xlabels .first { transform: none; }
.xlabels .last { transform: translateX(-100%); }
.upright span { writing-mode: vertical-rl; }
.below { margin: 0.2rem 0 0 3.4rem; text-align: center; max-width: none; }

.map { padding-bottom: 0.4rem; }
.heads { display: flex; flex-wrap: wrap; gap: 0.6rem 1.4rem; margin-bottom: 0.8rem; }
.heads figcaption { margin: 0; } .heads svg { overflow: visible; }

.example { padding: 1rem 0; border-top: 1px solid var(--line); }
.example h3 { margin: 0 0 0.6rem; color: var(--soft); font-weight: 500; font-size: 0.875rem; }
.outputs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); gap: 0.8rem 1.75rem;
  margin: 0; }
.outputs.texts { margin-bottom: 0.8rem; }
.outputs dt { color: var(--soft); font-size: 0.875rem; overflow-wrap: anywhere; }
.outputs dd, p.text { margin: 0; white-space: pre-wrap; }
mark { border-radius: 2px; color: inherit; }
mark.missing { background: var(--good-paper); box-shadow: inset 0 -2px var(--good); }
mark.extra { background: var(--bad-paper); box-shadow: inset 0 -2px var(--bad); }

@media (max-width: 63.99rem) {
  .xlabels .spare { display: none; }
  .results { grid-template-columns: minmax(0, 1fr) max-content; }
  .results > .head { display: none; }
  .results > [role="row"] { padding: 0.7rem 0; }
  .results .dots { grid-column: 1 / -1; }
  .results .against { grid-column: 1 / -1; padding: 0; display: flex; flex-wrap: wrap; align-items: baseline;
    gap: 0 0.7rem; }
  .results .against small { display: inline; }
  .results .scale > div { grid-column: 1 / -1; }
  .results svg { height: 2.6rem; }
}
@media (max-width: 47.99rem) {
  .page { padding: 1.5rem 1rem 3rem; }
  h1 { font-size: 1.6rem; } .verdict { font-size: 1.1rem; } section { margin: 1.75rem 0; }
  summary { grid-template-columns: 1rem minmax(0, 1fr); } summary span { grid-column: 2; }
  .facts > div { grid-template-columns: minmax(0, 1fr); }
  .plot > svg, .ylabels { height: 13rem; }
  .pairs { grid-template-columns: minmax(0, 1fr); }
  .pairs li { display: block; margin-bottom: 0.4rem; } .pairs span { display: block; }
}
@media print {
  .page { max-width: none; padding: 0; } .skip, fieldset.against-what { display: none; }
  [open] > summary::before, summary::before { content: ""; }
  ::details-content { content-visibility: visible; }
  small { font-size: 0.8rem; } section { margin: 1.5rem 0; }
  figure, tr, .example, .results > [role="row"] { break-inside: avoid; } h2, h3 { break-after: avoid; }
  mark, .badge { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

# A table of the class becomes a card for each row.
CARDS = """
  .CLASS, .CLASS :is(tbody, tr, th, td, caption) { display: block; }
  .CLASS thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .CLASS tbody { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 18rem), 1fr)); gap: 0.8rem; }
  .CLASS tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 5.6rem), 1fr));
    gap: 0.4rem 0.9rem; align-content: start; padding: 0.7rem 0.9rem; border-radius: 8px; background: var(--card); }
  .CLASS :is(tbody th, td) { padding: 0; border: 0; text-align: left; }
  .CLASS :is(tbody th, td.text, td.long) { grid-column: 1 / -1; } .CLASS tbody th { font-weight: 600; }
  .CLASS td::before { content: attr(data-label); display: block; color: var(--soft); font-size: 0.8rem;
    overflow-wrap: anywhere; }
  .CLASS :is(td.text, td.long)::before { display: inline; margin-right: 0.6rem; }
"""


def colour(number: int) -> str:
    """The classes of the `number`-th variant: one of eight colours, then the same with other dashes."""
    return f"c{number % len(COLOURS)} dash{number // len(COLOURS) % 4}"


def css() -> str:
    """The whole style sheet."""
    colours = [f".c{i} {{ --c: {each}; }}" for i, each in enumerate(COLOURS)]
    hidden = [f".curves:has(#show-{i}:not(:checked)) .s{i} {{ display: none; }}" for i in range(NUM_SERIES)]
    hidden += [f".maps:has(#layer-{i}:checked) .map:not(.layer-{i}) {{ display: none; }}" for i in range(NUM_LAYERS)]
    cards = [
        f"@media (max-width: {width}) {{{CARDS.replace('CLASS', kind)}}}"
        for kind, width in (("wide", "63.99rem"), ("narrow", "47.99rem"))
    ]
    scheme = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}"
    return "\n".join([f":root {{ {LIGHT} }}", scheme, *colours, *hidden, BASE, *cards])
