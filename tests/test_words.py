"""The field's own words (docs/glossary.md): no name that says what happened to a thing, and no word that another
replaced."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
CODE = sorted(file for folder in ("paddle_tfm", "plugins") for file in (ROOT / folder).rglob("*.py"))
PROSE = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "docs").glob("*.py"),
        *(ROOT / "recipes").rglob("*.yaml"),
        *(ROOT / "paddle_tfm/templates").rglob("*.in"),
        *ROOT.glob("*.py"),
    ]
)
# what happened to a thing, or how much there is of it, and not what it is
FORBIDDEN_NAMES = {"found", "given", "told", "portion", "spare", "LEAST", "FEW", "LOUD", "KEPT", "NEVER"}
# words of the first edition → what the field says
OLD_WORDS = {
    r"honou?r(?:s|ed|ing)?\b": "support",
    r"\blook_back\b|\blook_across\b": "self_attend, cross_attend",
    r"\bNotHere\b": "Skip",
    r"\bAtOnce\b|\bDecayApart\b|\bWholeState\b": "FusedAdam, DecoupledAdamW, CompleteState",
    r"[Dd]ropout falls on": "dropout is applied to",
    r"product with ones": "broadcast with a matmul",
    r"\b[Ll]aws?\b": "invariant, or counter-based random numbers",
    r"\bdeclared limits?\b": "expected failure",
    r"\bthe way out for what is not the output\b": "side channel for auxiliary losses and recorded activations",
    r"\b[Ww]ays? of an encoding\b|\bencoding's ways\b": "positional-encoding hooks",
    r"\bwhat a model adds to its loss\b|\b[Ee]xtra losses\b|\bextra terms? of the loss\b": "auxiliary losses",
    r"\banew\b": "re-created, recomputed, again",
    r"\bgo(?:es|ing)? on\b|\bwent on\b": "continues, resumes",
    r"\bby its nature\b": "by definition, or the property that causes it",
    r"\b[Ss]pread over rows\b": "broadcast",
    r"\bthe reference being fed\b|\bthe output fed\b": "teacher forcing",
    r"\bNone is told\b|\bis told of\b": "reported",
}


def names(tree):
    """(line, name) of all that a module names: variables, parameters, attributes that it writes, functions, classes,
    keywords."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or (
            isinstance(node, ast.ExceptHandler) and node.name
        ):
            yield node.lineno, node.name
        elif isinstance(node, ast.alias) and node.asname:
            yield 0, node.asname
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.lineno, node.name


def wrong_names(source):
    """What is wrong with the names of a module, a line each."""
    for line, name in names(ast.parse(source)):
        if name.strip("_") in FORBIDDEN_NAMES:
            yield f"line {line}: `{name}` says what happened to a thing: name the thing"


def wrong_words(text):
    """Words of `text` that others replaced, a line each."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, better in OLD_WORDS.items():
            for match in re.finditer(pattern, line):
                yield f"line {number}: “{match[0]}”: the field says {better}"


def test_names_say_what_a_thing_is():
    assert list(wrong_names("x.found = other.told")) == [
        "line 1: `found` says what happened to a thing: name the thing"
    ]
    assert [
        f"{file.relative_to(ROOT)} {problem}" for file in CODE for problem in wrong_names(file.read_text("utf-8"))
    ] == []


def test_words_are_those_of_the_field():
    assert len(list(wrong_words("Laws hold\nand training goes on"))) == 2
    problems = []
    for file in [*CODE, *PROSE]:
        text = file.read_text("utf-8")
        problems += [f"{file.relative_to(ROOT)} {problem}" for problem in wrong_words(text)]
    assert problems == []
