"""docs/findings.md: results that are committed are of the claims as they stand in the recipes, and nothing lacks words."""

import re
import sys
from pathlib import Path

import pytest
import yaml

DOCS = Path(__file__).parent.parent / "docs"
sys.path.insert(0, str(DOCS))
import findings_pages as findings  # noqa: E402


@pytest.mark.parametrize("name", sorted(findings.results()))
def test_a_result_is_of_the_claims_that_the_recipe_makes(name):
    """A claim that was changed after its run is another claim: train again, or take the change back."""
    result, recipe = findings.results()[name], findings.claiming()[name]
    assert result["recipe"] == recipe.name and result["departures"] == []
    claims = {claim["name"]: claim["claim"] for claim in result["claims"]}
    assert claims == {key: claim.model_dump(exclude_none=True) for key, claim in recipe.claims().items()}
    assert result["seeds"] == recipe.data["seeds"]
    assert result["runs"] == len(recipe.runs())
    assert result["machines"] and result["versions"]


def test_every_claim_has_its_chinese_words():
    words = yaml.safe_load((DOCS / "findings/words.yaml").read_text("utf-8"))["recipes"]
    for name, recipe in findings.claiming().items():
        assert name in words, f"docs/findings/words.yaml: add `summary` and `claims` of {name}"
        assert set(words[name]["claims"]) == set(recipe.claims()), f"docs/findings/words.yaml: {name}"
        if "differs" in words[name]:
            assert set(words[name]["differs"]) == {"en", "zh"}


def test_every_source_is_said_in_chinese():
    """Also of findings that were not run yet; what is left in English is a link."""
    page = findings.Page("zh", yaml.safe_load((DOCS / "findings/words.yaml").read_text("utf-8")))
    claims = [claim for recipe in findings.claiming().values() for claim in recipe.claims().values()]
    said = {claim.source: re.sub(r"\[.*?\]\(.*?\)", "", page.source(claim.source)) for claim in claims}
    assert {source: text for source, text in said.items() if re.search("[a-z]{2}|[,;]", text)} == {}
