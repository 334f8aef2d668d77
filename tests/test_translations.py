"""Both languages say the same, and the Chinese pages are typeset as Chinese.

A page and its translation have the same headings, tables, lists, code, names and numbers, section by section, so that
other tests read the English pages alone; the words of a Chinese page are those of docs/glossary.md, its punctuation is full-width, and one space stands between Chinese and Latin.
"""

import functools
import json
import re
from itertools import pairwise, zip_longest
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHINESE = sorted(
    path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.zh-CN.md"), *ROOT.glob("docs/**/*.zh-CN.*")]
)
GENERATED = [f"docs/{name}.zh-CN.md" for name in ("cli", "gallery", "recipes")]  # both from one source
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
HAN = r"[\u4e00-\u9fff]"
FULL_WIDTH = "，。；：？！、（）“”《》"
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
SCALES = {"million": 10**6, "万": 10**4, "亿": 10**8}
NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"


def text_of(page):
    """A page; of a notebook its cells, code in fences."""
    text = (ROOT / page).read_text("utf-8")
    if not page.endswith(".ipynb"):
        return text
    cells = [("".join(cell["source"]).strip(), cell["cell_type"] == "code") for cell in json.loads(text)["cells"]]
    return "\n\n".join(f"```python\n{source}\n```" if code else source for source, code in cells) + "\n"


def without_targets(text):
    """Links and pictures are their texts."""
    return re.sub(r"!?\[([^]]*)\]\([^)\s]*\)", r"\1", text)


def numbers(text):
    """The numbers of a text, however they are written: 1,000 and 1000, 4.5 million and 450 万, 2²⁴ and 10⁻⁶."""
    text = re.sub(r"([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)", lambda power: "^" + power[1].translate(SUPERSCRIPTS), without_targets(text))
    written = rf"(?<![\w.])({NUMBER})(e[-+]?\d+|\^-?\d+)?(?: ?(million|万|亿))?"
    return sorted(
        f"{round(float(digits.replace(',', '')) * SCALES.get(scale, 1), 9):.15g}{power}"
        for digits, power, scale in re.findall(written, text, re.ASCII)
    )


def names(text):
    """What stands between backticks."""
    return set(re.findall(r"`([^`\n]+)`", text))


def is_table(line):
    return line.startswith("|")


class Section:
    """What stands between two headings."""

    def __init__(self, text):
        self.level = len(re.match(r"#*", text)[0])
        self.code = [
            (language, re.sub(r" *#.*|^summary: .*", "", code, flags=re.MULTILINE))
            for language, code in FENCE.findall(text)
        ]
        lines = FENCE.sub("", text).splitlines()
        self.prose = "\n".join(line for line in lines if not is_table(line))
        self.items = len(re.findall(r"^(?:- |\d+\. )", self.prose, re.MULTILINE))
        self.tables = []
        for before, line in zip(["", *lines], lines, strict=False):
            if is_table(line):
                if not is_table(before):
                    self.tables.append([])
                self.tables[-1].append(re.split(r"(?<!\\)\|", line)[1:-1])


def sections(text):
    """A text cut at its headings, those in code aside."""
    kept = FENCE.sub(lambda code: code[0].replace("\n#", "\n\0"), text)
    return [Section(part.replace("\n\0", "\n#")) for part in re.split(r"^(?=#+ )", kept, flags=re.MULTILINE)[1:]]


def is_message(page, translation):
    """Whether a block of output is what the command line says in Chinese: the same lines, with the same numbers."""
    (language, said), (_, chinese) = page, translation
    same = said.count("\n") == chinese.count("\n") and set(numbers(said)) == set(numbers(chinese))
    return language == "" and same and bool(re.match(r"错误：|注意：|[\w/-]+：", chinese))


def differences(english, chinese):
    """What a translation says otherwise than its page, a sentence each."""
    english, chinese = sections(english), sections(chinese)
    if [section.level for section in english] != [section.level for section in chinese]:
        yield f"headings: {[section.level for section in english]}, {[section.level for section in chinese]}"
        return
    for number, (page, translation) in enumerate(zip(english, chinese, strict=True)):
        title = f"section {number}, “{translation.prose.splitlines()[0]}”"
        codes = zip_longest(page.code, translation.code, fillvalue=("", ""))
        if other := [pair for pair in codes if pair[0] != pair[1] and not is_message(*pair)]:
            yield f"{title}: code: {other}"
        if page.items != translation.items:
            yield f"{title}: {page.items} and {translation.items} items of lists"
        if set(numbers(page.prose)) != set(numbers(translation.prose)):
            yield f"{title}: numbers: {set(numbers(page.prose)) ^ set(numbers(translation.prose))}"
        if names(page.prose) != names(translation.prose):
            yield f"{title}: names: {names(page.prose) ^ names(translation.prose)}"
        shapes = [[[len(row) for row in table] for table in each.tables] for each in (page, translation)]
        if shapes[0] != shapes[1]:
            yield f"{title}: rows and columns of tables: {shapes[0]}, {shapes[1]}"
            continue
        for rows in zip(page.tables, translation.tables, strict=True):
            for row, translated in zip(*rows, strict=True):
                cells, others = "|".join(row), "|".join(translated)
                if numbers(cells) != numbers(others) or names(cells) != names(others):
                    yield f"{title}: a row's numbers or names: {cells} and {others}"


@functools.cache
def forbidden_words():
    """(what is not written, what is written instead) of the glossary's last table, the latter a term of its other tables."""
    words = []
    head, tail = text_of("docs/glossary.md").split("\n## Translated · ")
    terms = {term for line in head.splitlines() if is_table(line) for term in line.split("|")[2].strip().split("、")}
    for line in tail.splitlines():
        if is_table(line) and "`" in line:
            _, term, variants = (cell.strip() for cell in line.strip("|").split("|"))
            words += [(variant, term, term in terms) for variant in re.findall(r"`([^`]+)`", variants)]
    return words


def prose_of(chinese):
    """The lines and cells that were written in Chinese: code, links' targets and outputs of models aside."""
    text = FENCE.sub("", chinese)
    text = without_targets(re.sub(r"`[^`\n]*`", "code", text)).replace("**", "")
    text = re.sub(r"^\|.*（输出）\|.*(?:\n\|.*)*|^\| 原文 .*(?:\n\|.*)*", "", text, flags=re.MULTILINE)
    text = re.sub(r"\d{4}年\d+月\d+日(星期.)?", "日期", text)
    return [line.strip() for line in text.splitlines()]


def faults(chinese):
    """What is not set as Chinese is, a sentence each."""
    prose = prose_of(chinese)
    lines = [cell.strip() for line in prose for cell in (line.split("|") if is_table(line) else [line])]
    patterns = {
        "half-width punctuation beside Chinese": rf"{HAN}[,.;:?!()]|[,;:?!()]{HAN}",
        "no space between Chinese and Latin": rf"{HAN}[A-Za-z0-9]|[A-Za-z0-9%]{HAN}",
        "a space beside full-width punctuation": rf"(?<!^-) [{FULL_WIDTH}]|[{FULL_WIDTH}] ",
        "a space between Chinese characters": rf"{HAN} +{HAN}",
        "a space before %": r"\d %",
        "straight quotation marks": rf'"[^"]*{HAN}[^"]*"',
    }
    for line in lines:
        for fault, pattern in patterns.items():
            if place := re.search(pattern, line):
                yield f"{fault}: {line[max(0, place.start() - 12) : place.end() + 12]}"
        for variant, term, _ in forbidden_words():
            if re.search(variant, line):
                yield f"“{term}” is the term, not “{variant}”: {line}"
    for before, after in pairwise(prose):
        if re.search(rf"{HAN}$", before) and re.match(HAN, after):
            yield f"a line broken between Chinese characters, which shows as a space: {before[-12:]}/{after[:12]}"


def test_both_languages_have_the_same_structure_code_and_numbers():
    written = [page for page in CHINESE if page not in GENERATED]
    wrong = {page: list(differences(text_of(page.replace(".zh-CN", "")), text_of(page))) for page in written}
    assert {page: sentences for page, sentences in wrong.items() if sentences} == {}


def test_chinese_is_set_as_chinese_in_the_words_of_the_glossary():
    wrong = {page: list(faults(text_of(page))) for page in CHINESE}
    assert {page: sentences for page, sentences in wrong.items() if sentences} == {}


def test_what_is_written_instead_is_a_term_of_the_glossary():
    assert len(forbidden_words()) > 10
    assert [(variant, term) for variant, term, is_term in forbidden_words() if not is_term] == []
