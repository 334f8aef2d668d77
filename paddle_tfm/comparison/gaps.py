"""Two sides of a comparison: all in which they differ, and what of it is not the variant's.

A side is the runs of a variant. What is not known of it is left out: a folder that was copied in part is compared as
far as it goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

from paddle_tfm.comparison.runs.finished import Result
from paddle_tfm.language import _
from paddle_tfm.model.size import training_flops
from paddle_tfm.runs import changes
from paddle_tfm.runs.changes import BUILD, DIVISION, PLUGINS, Gap

MACHINE = "machine"
SHORTEST = 1.0  # seconds of a search; a shorter one says nothing of how long a token takes
OF_A_MACHINE = ("processor", "instructions", "cores", "threads", "memory_gib", "system", "device")
# section → what → what a difference does to the last bits of every number
LAST_BITS = {
    BUILD: {
        "paddle": "may change last bits: another build may have other kernels",
        "blas": "changes last bits: products are summed in another order",
        "products": "changes last bits: other kernels, or factors in another precision",
        "shards": "changes last bits: the gradients of a batch are summed in other parts (`train.shards` sets them)",
        "processes": "changes last bits: the gradients of a batch are summed in other parts (`--nproc`, `--nodes`)",
        "threads": "may change last bits: some products are divided among the threads of a shard",
    },
    MACHINE: {
        "processor": "may change last bits: a library may choose another kernel for it",
        "instructions": "may change last bits: they decide in which order oneDNN sums",
        "cores": "changes no bit",
        "threads": "changes no bit by itself: `shards` and their threads do; they stand under build if they differ",
        "memory_gib": "changes no bit",
        "system": "may change last bits: functions such as exp are the system's",
        "device": "changes last bits: a GPU has other kernels",
        "paddle_tfm": "may change last bits, or more: its notes say what changed",
        "paddle": "may change last bits: another version may have other kernels",
        "python": "changes no bit that we know of",
        "numpy": "may change last bits: some sums, and the search, are NumPy's",
    },
}
# of a run; floating-point operations of training for each token, tokens and seconds of training; seconds of the search
# of the test split for each token of output, and bytes of the key/value cache for it
COSTS = ("parameters", "flops_per_token", "tokens", "seconds", "peak_memory_mib", "decoding_seconds", "cache_bytes")
ALL = ""  # runs: of what is known of them together
SIZES = {
    "parameters": "parameters",
    "flops_per_token": "operations for each token of training",
    "tokens": "tokens of training",
}
# Percent of a size from which a sentence says that scores may differ for it. By the exponents of Kaplan and others
# (arXiv:2001.08361), 0.05 to 0.1, a loss changes by a tenth of that percentage at most.
WEIGHTY = 1.0
# Those that no two runs have alike: percent, below which is noise.
NOISY = {"seconds": 5.0, "peak_memory_mib": 2.0, "decoding_seconds": 25.0}


@dataclass(frozen=True)
class Side:
    """All that is known of one side.

    Args:
        recipe: resolved, with the defaults of its components. facts: section (plugins, data, build, machine) → what →
            how it is. costs: of `COSTS`, those that are known, a number for each run by the name of its folder; of
            decoding one of `ALL` runs.
    """

    name: str
    recipe: Mapping[str, Any]
    facts: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    costs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


class Confound(NamedTuple):
    """A cost in which two sides differ: what the difference of their scores may be owed to."""

    what: str
    one: float
    other: float
    percent: float  # of `other` over `one`
    sentence: str


def side_of(name: str, runs: Sequence[Result], recipe: Mapping[str, Any]) -> Side:
    """The side that the runs of one variant are; all but the costs is that of the first, whose `recipe` it is."""
    identity = runs[0].identity
    training: Mapping[str, Any] = next(iter(runs[0].about.get("trainings", [])[-1:]), {})
    files = {f"{plugin} (file)": file for plugin, file in identity.get("plugin_files", {}).items()}
    machine = {key: training[key] for key in OF_A_MACHINE if key in training}
    facts = changes.facts(identity) | {MACHINE: {**machine, **training.get("versions", {})}}
    facts[PLUGINS] |= files
    return Side(name, recipe, facts, _costs(runs))


def _costs(runs: Sequence[Result]) -> dict[str, dict[str, float]]:
    values: dict[str, dict[str, float]] = {}
    tokens, searched = 0, 0.0  # of all runs: short outputs of one seed weigh as little as they are
    whole = [run for run in runs if not run.results.get("diverged")]  # one that ended early cost less
    for run in whole or runs:
        results, trainings = run.results, run.about.get("trainings", [])
        known = {**run.about, **(trainings[-1] if trainings else {}), **results}
        if matrices := results.get("matrix_parameters"):
            known["flops_per_token"] = training_flops(matrices, 1)
        decoding = results.get("decoding", {})
        tokens, searched = tokens + decoding.get("tokens", 0), searched + decoding.get("seconds", 0.0)
        for cost in COSTS:
            if known.get(cost) is not None:
                values.setdefault(cost, {})[run.folder.name] = known[cost]
    if tokens and searched >= SHORTEST:
        values["decoding_seconds"] = {ALL: searched / tokens}
    return values


def paired(one: Side, other: Side, cost: str) -> tuple[list[float], list[float]] | None:
    """A cost of both sides in the runs that both have: seed 4 has other batches than seed 1, and where seeds are added
    until a variant is settled, not all have as many. All runs where none is of both; None where a side's cost is not
    known."""
    a, b = one.costs.get(cost), other.costs.get(cost)
    if not a or not b:
        return None
    both = [run for run in a if run in b]
    return ([a[run] for run in both], [b[run] for run in both]) if both else ([*a.values()], [*b.values()])


def gaps(one: Side, other: Side) -> list[Gap]:
    """All in which the sides differ, as far as both are known: settings, plugins, data, build and machine."""
    both = [{section: facts for section, facts in side.facts.items() if facts} for side in (one, other)]
    return changes.gaps((one.recipe, both[0]), (other.recipe, both[1]))


def last_bits(gap: Gap) -> str | None:
    """What a difference does to the last bits of numbers; None of what changes more than these."""
    return LAST_BITS.get(gap.section, {}).get(gap.what)


def confounds(one: Side, other: Side) -> Iterator[Confound]:
    """The costs in which `other` differs from `one`, each with what it means for a comparison of scores."""
    same_speed = one.facts.get(MACHINE) == other.facts.get(MACHINE) and _division(one) == _division(other)
    as_long = _as_long(one, other)
    for cost in COSTS:
        values = paired(one, other, cost)
        if values is None or not all(values[0]) or (cost in NOISY and not same_speed):
            continue
        a, b = values
        percent = 100 * (fmean(b) / fmean(a) - 1)
        overlap = max(min(a), min(b)) <= min(max(a), max(b))
        if percent and not (cost in NOISY and (overlap or abs(percent) < NOISY[cost])):
            yield Confound(cost, fmean(a), fmean(b), percent, _meaning(cost, percent, one.name, as_long=as_long))


def _division(side: Side) -> list[object]:
    build = side.facts.get(BUILD, {})
    return [build.get(what) for what in DIVISION]


def _as_long(one: Side, other: Side) -> bool:
    """Whether both train on about as many tokens, so that their times tell how fast they are."""
    a, b = (fmean(tokens) for tokens in paired(one, other, "tokens") or ([1], [1]))
    return abs(b - a) <= a * NOISY["seconds"] / 100


def _meaning(cost: str, percent: float, base: str, *, as_long: bool) -> str:
    """What a difference of so many percent means: `2.1% more parameters than base: a difference of scores may be owed
    to that`."""
    if cost in SIZES:
        part = f"{abs(percent):.{0 if abs(percent) >= 100 else 1}f}%"
        part = _("less than {share}").format(share="0.1%") if abs(percent) < 0.05 else part
        text = _("{part} more {what} than {base}") if percent > 0 else _("{part} fewer {what} than {base}")
        sentence = text.format(part=part, what=_(SIZES[cost]), base=base)
        return sentence + (_(": this may explain a difference of scores") if abs(percent) >= WEIGHTY else "")
    size = f"{percent:+.{0 if abs(percent) >= 100 else 1}f}%".replace("-", "−")
    if size[1:] == "0.0%":
        size = f"{'+' if percent > 0 else '−'}{_('less than {share}').format(share='0.1%')}"
    if cost == "seconds" and not as_long:
        return _("{change} time of training").format(change=size)
    if cost == "seconds":
        steps = 100 * (1 / (1 + percent / 100) - 1)
        fewer, more = (
            _("{change} time: in equal time it would train {share} fewer steps"),
            _("{change} time: in equal time it would train {share} more steps"),
        )
        return (fewer if percent > 0 else more).format(change=size, share=f"{abs(steps):.0f}%")
    if cost == "decoding_seconds":
        return _("{change} time for each token that is written").format(change=size)
    if cost == "cache_bytes":
        return _("{change} bytes of key/value cache for each token that is written").format(change=size)
    return _("{change} memory of tensors at its peak").format(change=size)
