"""What a paper says of a comparison: a paragraph of methods with its numbers, and BibTeX of what it used."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

from paddle_tfm import latex, units
from paddle_tfm.comparison.columns import how_many_seeds, method
from paddle_tfm.comparison.report import recipe_words
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.tuning_record import read_tuned
from paddle_tfm.component_source import papers
from paddle_tfm.errors import UserError
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Table
from paddle_tfm.units import plural

SOFTWARE = "paddle_tfm"
PADDLE = """@article{paddlepaddle,
  title = {{PaddlePaddle}: An Open-Source Deep Learning Platform from Industrial Practice},
  author = {Ma, Yanjun and Yu, Dianhai and Wu, Tian and Wang, Haifeng},
  journal = {Frontiers of Data and Computing},
  volume = {1}, number = {1}, pages = {105--115}, year = {2019},
  doi = {10.11871/jfdc.issn.2096.742X.2019.01.011}
}"""
SACREBLEU = """@inproceedings{post-2018-call,
  title = {A Call for Clarity in Reporting {BLEU} Scores},
  author = {Post, Matt},
  booktitle = {Proceedings of the Third Conference on Machine Translation: Research Papers},
  pages = {186--191}, year = {2018}, url = {https://aclanthology.org/W18-6319}
}"""


def methods(facts: Facts) -> str:
    """The paragraph."""
    return " ".join([*_setting(facts), *_budget(facts), *_numbers(facts), _tools(facts)])


def _escaped(text: str) -> str:
    return latex.escape(text.replace("'", "’"))


def _setting(facts: Facts) -> list[str]:
    """What was compared, on which data, with which model."""
    rows = facts.comparison.rows
    names = ", ".join(row.variant for row in rows)
    many = f"We compare {len(rows)} variants ({names})" if len(rows) > 1 else f"We train one model ({names})"
    task = recipe_words.component(facts.recipe.get("task", ""))
    sentences = [f"{many} on {task}." if task else f"{many}."]
    if data := recipe_words.data(facts.about):
        sentences.append(f"Data: {data.replace(' · ', '; ')}.")
    if model := recipe_words.model(facts.recipe.get("model", {})):
        sizes = [row.parameters for row in rows]
        size = f"{min(sizes):,}" if len(set(sizes)) == 1 else f"{min(sizes):,} to {max(sizes):,}"
        baseline = f" of the baseline {facts.baseline}" if len(rows) > 1 else ""
        sentences.append(f"The model{baseline}: {model.replace(' · ', '; ')}; {size} parameters.")
    return sentences


def _budget(facts: Facts) -> list[str]:
    """How it was trained, with which seeds."""
    runs, names = facts.comparison.runs, [row.variant for row in facts.comparison.rows]
    sentences = []
    training, differs = facts.training()
    if training:
        whose = f" of the baseline {facts.baseline}" if differs else ""
        sentences.append(f"Training{whose}: {training.replace(' · ', '; ')}.")
    each = "Each variant was" if len(names) > 1 else "It was"
    sentences.append(f"{each} trained with {how_many_seeds(facts.comparison)} ({facts.seeds()}).")
    if tuned := read_tuned(facts.comparison):
        trials = max((item.trials for item in tuned.variants.values()), default=0)
        sentences.append(
            f"Before, {plural(trials, 'trial')} of each variant, the same for all and with another seed, chose on the "
            f"validation split from {tuned.space()}: "
            f"{'; '.join(f'{name} {tuned.variants[name].text()}' for name in names if name in tuned.variants)}."
        )
    if lost := sum(row.diverged for row in facts.comparison.rows):
        sentences.append(f"Of {len(runs)} runs {lost} diverged.")
    return sentences


def _numbers(facts: Facts) -> list[str]:
    """What was measured, and how it was decided."""
    comparison = facts.comparison
    signature = comparison.signature(comparison.metric)
    sentences = []
    if search := recipe_words.component(facts.recipe.get("search", "")):
        sentences.append(f"Outputs were written by {search} search.".replace("search search", "search"))
    name = units.metric_name(comparison.metric)
    sentences.append(
        f"We report {name} on the {comparison.split} split{f' (signature {signature})' if signature else ''}, "
        "mean and standard deviation over seeds."
    )
    if len(comparison.rows) > 1:
        sentences.append(method(comparison))
    return sentences


def _tools(facts: Facts) -> str:
    """Software and machine."""
    versions = next((dict(item.get("versions") or {}) for item in facts.trainings()), {})
    machine = next(
        (f"on {item['processor']} ({item['device']})" for item in facts.trainings() if "processor" in item), ""
    )
    ours = f"{SOFTWARE} {versions.get('paddle_tfm', '')}".strip()
    theirs = f"PaddlePaddle {versions.get('paddle', '')}".strip()
    return f"All was computed with {ours} and {theirs} {machine}".strip() + "."


def bibliography(facts: Facts) -> dict[str, str]:
    """key → BibTeX of this software, Paddle, sacreBLEU where it scored, and of each paper that a component of the
    compared runs names by its arXiv number; of one that is not in `papers.tsv`, the number alone."""
    entries = {SOFTWARE: _software(facts), "paddlepaddle": PADDLE}
    if any("version:" in text for text in facts.comparison.signatures.values()):
        entries["post-2018-call"] = SACREBLEU
    return entries | {f"arxiv-{number}": _arxiv(number, names) for number, names in _papers(facts).items()}


def _software(facts: Facts) -> str:
    about = metadata.metadata("paddle-tfm")
    versions = next((dict(item.get("versions") or {}) for item in facts.trainings()), {})
    title = f"{{paddle\\_tfm}}: {about['Summary'][0].lower()}{about['Summary'][1:]}"
    version = versions.get("paddle_tfm", about["Version"])
    return (
        f"@software{{{SOFTWARE},\n  title = {{{title}}},\n  author = {{{{The paddle_tfm developers}}}},\n"
        f"  version = {{{version}}}\n}}".replace("The paddle_tfm", r"The paddle\_tfm")
    )


def _arxiv(number: str, names: Iterable[str]) -> str:
    title, authors = known_papers().get(number, ("", ""))
    whose = " and ".join(map(_author, authors.split(", ")))
    known = f"  title = {{{{{_escaped(title)}}}}},\n  author = {{{whose}}},\n" if title else ""
    return (
        f"@misc{{arxiv-{number},\n{known}  year = {{20{number[:2]}}}, howpublished = {{arXiv:{number}}},\n"
        f"  eprint = {{{number}}}, archivePrefix = {{arXiv}},\n"
        f"  url = {{https://arxiv.org/abs/{number}}},\n  annote = {{{_escaped(', '.join(names))}}}\n}}"
    )


def _author(name: str) -> str:
    """A name; that of a group is in braces, so that BibTeX takes no word of it for a surname."""
    return f"{{{_escaped(name[1:-1])}}}" if name.startswith("{") else _escaped(name)


@cache
def known_papers() -> dict[str, tuple[str, str]]:
    """arXiv number → title and authors, of the papers that the components here cite: those of the paper's page,
    https://arxiv.org/abs/NUMBER. A long list of authors ends with `others`, which BibTeX writes as "et al."."""
    lines = (Path(__file__).parent / "papers.tsv").read_text("utf-8").splitlines()[1:]
    return {number: (title, authors) for number, title, authors in (line.split("\t") for line in lines)}


def caption(facts: Facts, table: Table) -> str:
    """What stands over a table in a paper: what it is, what was compared, and what its signs mean, unless its title
    says that."""
    sentences = [f"{table.title.rstrip('.')}."] if table.title else []
    sentences.append(facts.sentence())
    if "±" not in table.title and any(" ± " in column.cell(row) for column in table.columns for row in table.rows):
        sentences.append("Mean ± standard deviation over seeds.")
    has_intervals = any(column.heading.endswith(" interval") for column in table.columns)
    if "interval" not in table.title and has_intervals and len(facts.comparison.rows) > 1:
        sentences.append(method(facts.comparison))
    return " ".join(sentences).replace("'", "’")


def figure_caption(facts: Facts, section: Section) -> str:
    """What stands below a figure, which has a title and names its axes: what it is of, and what was compared."""
    what = f"{section.heading}: {section.summary}." if section.summary else f"{section.heading}."
    return " ".join([what, facts.sentence(), *getattr(section, "notes", lambda facts: ())(facts)])


def _papers(facts: Facts) -> dict[str, list[str]]:
    """arXiv number → the components, "norm rms", that name it."""
    used = dict.fromkeys(name for run in facts.comparison.runs for name in run.identity.get("components") or {})
    numbers: dict[str, list[str]] = {}
    for component in sorted(used):
        kind, _, name = component.partition(" ")
        try:
            docstring = facts.registry.entry(kind, name).docstring()
        except (UserError, KeyError):  # of a plugin that is not here now
            continue
        for number in papers(docstring):
            numbers.setdefault(number, []).append(component)
    return numbers
