"""`claims.json`: what came out of a recipe's claims, with everything that determined the numbers. Small enough to be
kept beside a recipe; docs/findings.md is written from such files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from paddle_tfm.comparison.claims import Claims
from paddle_tfm.comparison.runs import Result
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.errors import UserError
from paddle_tfm.train.about import read_about
from paddle_tfm.train.forms import read_stored_identity

FILE = "claims.json"


def record(comparison: Comparison, claims: Claims) -> dict[str, Any]:
    """The judged claims; the runs' number, seeds and seconds; hashes of their recipes, plugins and texts; versions; and
    the machines that trained them."""
    runs = [*comparison.runs, *comparison.smaller]
    identities = [_identity(run) for run in runs]
    trainings = [each for run in runs for each in read_about(run.folder).get("trainings", [])]
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


def _identity(run: Result) -> Mapping[str, Any]:
    try:
        return read_stored_identity(run.folder)
    except UserError:
        return {}


def _hash(parts: list) -> str:
    """One hash of those of all runs, in whatever order they are read."""
    texts = sorted(json.dumps(part, sort_keys=True) for part in parts)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _distinct(parts: list) -> list:
    return list({json.dumps(part, sort_keys=True): part for part in parts if part}.values())
