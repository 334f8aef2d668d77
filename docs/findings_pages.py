"""docs/findings.md and its Chinese twin, from the recipes in recipes/findings and the results in docs/findings.

A result is `claims.json` of a run's folder, copied: `paddle-tfm run findings/NAME`, then
`cp runs/NAME/claims.json docs/findings/NAME.json`. All other texts are in docs/findings/words.yaml.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
RESULTS = HERE / "findings"
VERDICTS = ("reproduced", "not reproduced", "undetermined")
NUMBERS = ("verdict", "mean", "low", "high", "seeds", "lost", "unit")


def pages() -> dict[Path, str]:
    """File → text, in both languages."""
    words = yaml.safe_load((RESULTS / "words.yaml").read_text("utf-8"))
    files = {"en": HERE / "findings.md", "zh": HERE / "findings.zh-CN.md"}
    return {file: Page(language, words).text() for language, file in files.items()}


def claiming() -> dict[str, Any]:
    """The recipes in recipes/findings that claim something, by name."""
    from paddle_tfm import load_recipe
    from paddle_tfm.recipe.reading import shipped

    names = sorted(name for name in shipped() if name.startswith("findings/"))
    recipes = {name.removeprefix("findings/"): load_recipe(name) for name in names}
    return {name: recipe for name, recipe in recipes.items() if recipe.claims()}


def results() -> dict[str, dict[str, Any]]:
    """The committed results, by the name of their recipe."""
    return {file.stem: json.loads(file.read_text("utf-8")) for file in sorted(RESULTS.glob("*.json"))}


class Page:
    """The page in one language, `en` or `zh`."""

    def __init__(self, language: str, words: Mapping[str, Any]):
        self.language, self.words, self.of_recipes = language, words["pages"][language], words["recipes"]

    def text(self) -> str:
        """The frame, the counts of verdicts, and a section for each result."""
        recipes, stored = claiming(), results()
        verdicts = [claim["verdict"] for result in stored.values() for claim in result["claims"]]
        totals = self.words["totals"].format(len(verdicts), *map(verdicts.count, VERDICTS))
        lines = [self.words["head"], totals]
        for name, result in stored.items():
            lines += ["", f"## {name}", "", *self._finding(name, recipes[name], result)]
        return "\n".join(lines) + "\n"

    def _finding(self, name: str, recipe, result: Mapping[str, Any]) -> list[str]:
        summary = recipe.data["summary"] if self.language == "en" else self.of_recipes[name]["summary"]
        rows = [self._claim(name, claim) for claim in result["claims"]]
        stop = ". " if self.language == "en" else "。"
        lines = [
            f"[`{name}`](../recipes/findings/{name}.yaml) · {summary}{stop}{self._identity(result)}",
            "",
            *_table(self.words["columns"], rows),
        ]
        if differs := (self.of_recipes.get(name) or {}).get("differs"):
            lines += ["", f"{self.words['differs']}{differs[self.language].strip()}"]
        return lines

    def _claim(self, name: str, stored: Mapping[str, Any]) -> list[str]:
        """What is claimed, where it is from, what was measured, and the verdict."""
        from paddle_tfm.comparison.claims.judge import Judgement
        from paddle_tfm.comparison.claims.words import claimed, measured
        from paddle_tfm.recipe.sections.claims import ClaimSettings

        claim = ClaimSettings.model_validate(stored["claim"])
        judgement = Judgement(stored["name"], claim, **{key: stored[key] for key in NUMBERS})
        says = claim.says if self.language == "en" else self.of_recipes[name]["claims"][stored["name"]]
        numbers = (
            _replaced(text, self.words["numbers"]) for text in (measured(judgement), claimed(claim, stored["unit"]))
        )
        verdict = self.words["verdicts"][judgement.verdict]
        return [says, self.source(claim.source), *numbers, f"**{verdict}**"]

    def source(self, text: str) -> str:
        """Where a claim is from, in this language, its papers as links."""
        linked = re.sub(r"arXiv:(\d{4}\.\d{4,5})", r"[arXiv:\1](https://arxiv.org/abs/\1)", text)
        return _replaced(linked, self.words["sources"])

    def _identity(self, result: Mapping[str, Any]) -> str:
        comma, semicolon = (", ", "; ") if self.language == "en" else ("、", "；")
        return self.words["identity"].format(
            runs=result["runs"],
            seeds=comma.join(map(str, result["seeds"])),
            minutes=max(1, round(result["seconds"] / 60)),
            finished=result["finished"],
            machine=semicolon.join(self.words["machine"].format(**each) for each in result["machines"]),
        )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (header, ["---"] * len(header), *rows)]


def _replaced(text: str, replacements: Sequence[Sequence[str]]) -> str:
    for pattern, other in replacements:
        text = re.sub(pattern, other, text)
    return text
