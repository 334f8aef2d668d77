"""How the page looks, light and dark."""

CSS = """
:root { --ink: #24292f; --soft: #59636e; --line: #d8dee4; --paper: #ffffff; --card: #f6f8fa; --good: #116c37;
  --bad: #b42318; --good-paper: #dcf5e4; --bad-paper: #fde4e1; --accent: #0b62a8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa5b1; --line: #39424d; --paper: #0f141a;
  --card: #181f27; --good: #6ddb95; --bad: #ff9d92; --good-paper: #123d23; --bad-paper: #4f1d19; --accent: #6cb6ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5; font: 16px/1.5 system-ui,
  -apple-system, "Segoe UI", Roboto, "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif; }
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
thead th { border-top: 0; vertical-align: bottom; white-space: normal; background: var(--card);
  color: var(--soft); font-weight: 600; }
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
@media (max-width: 40rem) { main { padding: 1.5rem 0.9rem 3rem; } h1 { font-size: 1.6rem; }
  .verdict { font-size: 1rem; } th:first-child { max-width: 9rem; } }
@media print { .wide { overflow: visible; } }
"""
