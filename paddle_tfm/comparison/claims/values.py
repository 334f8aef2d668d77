"""The numbers that a recipe's claims are about, collected from the runs of a comparison."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from paddle_tfm.comparison.claims.judge import Claims, Judgement, judge
from paddle_tfm.comparison.runs.comparable import hashes_of_texts, other_pieces
from paddle_tfm.comparison.runs.finished import Result, grouped
from paddle_tfm.comparison.runs.trained_from import unlike, unlike_in_sweep
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.errors import UserError
from paddle_tfm.files import read_json
from paddle_tfm.recipe.sections.claims import GRADIENT_NORM, ClaimSettings
from paddle_tfm.runs.logs import read_rows


def judge_all(
    comparison: Comparison, claims: Mapping[str, ClaimSettings], departures: Sequence[str] = ()
) -> Claims | None:
    """Each claim judged by the runs of the comparison; None where there is none."""
    groups = grouped([*comparison.runs, *comparison.smaller])
    judgements = [_judgement(comparison, groups, name, claim) for name, claim in claims.items()]
    if departures:
        judgements = [replace(each, verdict="no verdict") for each in judgements]
    return Claims(judgements, tuple(departures)) if judgements else None


def recorded_claims(comparison: Comparison, sweep: Path) -> Claims | None:
    """The claims that the `comparison.json` of a sweep holds, judged by the runs as they are now; None where it holds
    none, is damaged, or a variant that they are about is not here."""
    try:
        data = read_json(sweep / "comparison.json")
        claims = {str(each["name"]): ClaimSettings.model_validate(each["claim"]) for each in data.get("claims") or []}
    except (UserError, ValidationError, KeyError, TypeError):
        return None
    here = set(grouped([*comparison.runs, *comparison.smaller]))
    if any({claim.variant, claim.over} - {None} - here for claim in claims.values()):
        return None
    return judge_all(comparison, claims, data.get("departures") or [])


def _judgement(
    comparison: Comparison, groups: Mapping[str, Sequence[Result]], name: str, claim: ClaimSettings
) -> Judgement:
    unit = comparison.unit(claim.metric)
    runs, base = groups.get(claim.variant, ()), groups.get(claim.over or "", ())
    if any(unlike([run.origin for run in some]) for some in (runs, base)):
        return replace(judge(name, claim, [], None, unit), reason="the runs differ in more than their seeds")
    if claim.over is None:
        return judge(name, claim, [_value(run, claim) for run in runs], None, unit)
    if runs and base and unlike_in_sweep(base[0].origin, runs[0].origin):
        return replace(judge(name, claim, [], None, unit), reason="the variants also differ in what is not compared")
    others = {run.seed: run for run in base}
    pairs = [(run, others[run.seed]) for run in runs if run.seed in others]
    pairs = [pair for pair in pairs if not _is_other(pair, claim.metric)]
    values, those = [_value(run, claim) for run, _ in pairs], [_value(other, claim) for _, other in pairs]
    return judge(name, claim, values, those, unit)


def _is_other(pair: Sequence[Result], metric: str) -> bool:
    """Whether a metric of two runs is of other texts, or of other pieces."""
    return len(hashes_of_texts(pair, metric)) > 1 or other_pieces(pair, metric)


def _value(run: Result, claim: ClaimSettings) -> float:
    """The number of one run; NaN where it diverged or has none."""
    if claim.metric == GRADIENT_NORM:
        return gradient_norm(run, claim.at or "") / (gradient_norm(run, claim.divided_by) if claim.divided_by else 1.0)
    if claim.split == "valid":
        return math.nan if run.results.get("diverged") else run.results["valid"].get(claim.metric, math.nan)
    return run.metric(claim.metric)


def gradient_norm(run: Result, place: str) -> float:
    """The joint norm of the first step's gradients of a parameter, or of all parameters below a path, before clipping;
    NaN where none was logged. A part −1 of the path is the last layer."""
    rows = (row.get("gradient_norms") for row in read_rows(run.folder / "metrics.jsonl"))
    norms: dict[str, float] = next(filter(None, rows), {})
    if (match := re.search(r"(^|.*\.)-1(\.|$)", place)) is not None:
        above = match[1]
        parts = {path[len(above) :].split(".")[0] for path in norms if path.startswith(above)}
        last = max((int(part) for part in parts if part.isdigit()), default=-1)
        place = f"{above}{last}{place[len(above) + 2 :]}"
    squares = [norm * norm for path, norm in norms.items() if path == place or path.startswith(f"{place}.")]
    return math.sqrt(sum(squares)) if squares and sum(squares) > 0 else math.nan


FILE = "claims.json"


def record(comparison: Comparison, claims: Claims) -> dict[str, Any]:
    """The judged claims; the runs' number, seeds and seconds; hashes of their recipes, plugins and texts; versions; and
    the machines that trained them."""
    runs = [*comparison.runs, *comparison.smaller]
    identities = [run.identity for run in runs]
    trainings = [each for run in runs for each in run.about.get("trainings", [])]
    machines = [{key: each.get(key) for key in ("processor", "cores", "threads", "system")} for each in trainings]
    return {
        "recipe": comparison.name,
        **claims.data(),
        "runs": len(runs),
        "seeds": sorted({run.seed for run in runs}),
        "seconds": round(sum(run.results.get("wall_seconds", run.results["seconds"]) for run in runs)),
        "finished": max((str(each.get("started", "")) for each in trainings), default="")[:10],
        "identity": _hash([each.get("hash") for each in identities]),
        "recipes": _hash([each.get("recipe") for each in identities]),
        "texts": _hash([each.get("data") for each in identities]),
        "versions": _distinct([each.get("versions") for each in trainings]),
        "blas": _distinct([each.get("blas") for each in identities]),
        "machines": _distinct(machines),
    }


def _hash(parts: list) -> str:
    """One hash of those of all runs, in whatever order they are read."""
    texts = sorted(json.dumps(part, sort_keys=True) for part in parts)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _distinct(parts: list) -> list:
    return list({json.dumps(part, sort_keys=True): part for part in parts if part}.values())
