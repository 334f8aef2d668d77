"""What `compare` says of runs: recorded ones, sweeps of which only `results.json` is written, and one that is trained."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

from trees import Said, Task, Tree

import recipes

KEPT_OF_A_ROW = ("variant", "seeds", "mean", "spread", "difference", "diverged", "parameters")
KEPT_OF_A_CLAIM = ("name", "verdict", "mean", "low", "high", "seeds", "lost")
DIRECTIONS = {"exact_match": True, "token_error_rate": False}
PARAMETERS = {"": 1000, "s": 1000, "m": 4000, "l": 16000}  # of each size of a ladder
LOSS = ["--metric", "loss"]  # a smallest effect is of the metric that a recipe calls best, here the default
SWEEP = {
    **recipes.SMALL,
    "name": "sweep",
    "task": {"name": "copy", **recipes.NUMBERS},
    "evaluate": {**recipes.SMALL["evaluate"], "best": "token_error_rate"},
    "baseline": "layer",
    "variants": {"layer": {}, "rms": {"model.norm": "rms"}, "fast": {"train.schedule": recipes.RATE}},
    "seeds": [1, 2, 3],
    "smallest_effect": 5.0,
    "claims": {
        "fast-learns": {
            "says": "It learns faster.", "source": "of our own", "metric": "loss", "variant": "fast", "over": "layer", "below": 0.0,
        },
        "norms-agree": {
            "says": "They are alike.", "source": "of our own", "metric": "loss", "variant": "rms", "over": "layer",
            "measure": "percent", "within": 20.0,
        },
    },
}  # fmt: skip


def comparisons(tree: Tree, pinned: dict | None) -> dict[str, object]:
    """Rows with means, verdicts and intervals, and the judged claims."""
    folder, options = tree.new_folder("compared"), {}
    for source in sorted((tree.records / "docs" / "results").glob("multi30k-*")):
        shutil.copytree(source, folder / f"recorded {source.name}")
        options[f"recorded {source.name}"] = ["--metric", "chrf"]
    for file in sorted((tree.records / "docs" / "findings").glob("*.json")):
        baseline, sweep = _after(file)
        _write(folder / f"after {file.stem}", sweep)
        options[f"after {file.stem}"] = ["--metric", "exact_match", "--baseline", baseline]
    for name, (sweep, question, more) in _made().items():
        _write(folder / name, sweep, question)
        options[name] = ["--metric", "exact_match", "--baseline", "a", *more]
    names = tree.chosen(options)
    tasks = [Task(["compare", name, *options[name], "--json", "--out", f"pages/{name}"], folder) for name in names]
    facts = dict(zip(names, map(_facts, tree.commands(tasks))))
    return facts | (_trained(tree) if tree.chosen(["trained"]) else {})


def _facts(said: Said) -> dict[str, object]:
    if said.status:
        return {"status": said.status, "errors": said.errors[-500:]}
    data = json.loads(said.out)
    rows = {row["variant"]: {key: row.get(key) for key in KEPT_OF_A_ROW} for row in data["rows"]}
    claims = [{key: claim.get(key) for key in KEPT_OF_A_CLAIM} for claim in data.get("claims", [])]
    kept = {key: data.get(key) for key in ("metric", "baseline", "higher_is_better")}
    return {
        **kept,
        "order": list(rows),
        "rows": rows,
        "claims": claims,
        "not_compared": sorted(data.get("not_compared", {})),
    }


def _trained(tree: Tree) -> dict[str, object]:
    """A sweep with claims, whose runs are trained here; and two of its runs by bootstrap."""
    folder = tree.new_folder("sweep")
    recipes.write_yaml(folder / "recipe.yaml", SWEEP)
    two = ["runs/layer/seed-1", "runs/fast/seed-1", "--bootstrap", "--metric", "chrf", "--out", "both"]
    calls = [["run", "recipe.yaml", "--out", "runs", "--workers", "1"], ["compare", "runs"], ["compare", *two]]
    ran, compared, bootstrap = tree.commands([Task([*call, "--json"], folder) for call in calls])
    if ran.status:
        return {"trained": {"status": ran.status, "errors": ran.errors[-2000:]}}
    found = json.loads(bootstrap.out) if bootstrap.status == 0 else bootstrap.errors[-500:]
    return {"trained": _facts(compared), "trained, by bootstrap": {"status": bootstrap.status, "numbers": found}}


def _write(folder: Path, sweep: dict[str, list], question: dict | None = None) -> None:
    """Runs of each variant: a value a seed, None where it diverged."""
    for variant, values in sweep.items():
        for seed, value in enumerate(values, 1):
            if value == "absent":
                continue
            run = folder / variant / f"seed-{seed}"
            run.mkdir(parents=True)
            test = {} if value is None else {"exact_match": value, "token_error_rate": 1.2 - value, "loss": 3.0 - value}
            size = variant.partition("@")[2]
            results = {
                "recipe": "made", "variant": variant, "seed": seed, "steps": 4, "parameters": PARAMETERS[size],
                "matrix_parameters": PARAMETERS[size], "tokens": 1000000, "seconds": 60.0, "tokens_per_second": 9.0, "best_step": 4,
                "dropped": {}, "diverged": "the loss became nan at step 3" if value is None else None,
                "directions": DIRECTIONS, "units": dict.fromkeys(DIRECTIONS, "%"), "signatures": {}, "valid": {}, "test": test, "data": "d", **({"size": size} if size else {}),
            }  # fmt: skip
            (run / "results.json").write_text(json.dumps(results), "utf-8")
    if question is not None:
        (folder / "command.json").write_text(json.dumps({"question": question}), "utf-8")


def _after(file: Path) -> tuple[str, dict[str, list]]:
    """A baseline, and a sweep with the variants and the numbers of seeds of a recorded finding, whose differences are
    drawn about its means with the width of its intervals."""
    draw, claims = random.Random(file.stem), json.loads(file.read_text("utf-8"))["claims"]
    baseline = next((each["claim"]["over"] for each in claims if each["claim"].get("over")), "a").partition("@")[0]
    sweep = {baseline: [0.5 + draw.gauss(0.0, 0.02) for _ in range(claims[0]["seeds"])]}
    for number, each in enumerate(claims):
        low, mean, high = (0.0 if each[key] is None else each[key] for key in ("low", "mean", "high"))
        scale = 0.05 / max(abs(low), abs(mean), abs(high), 1e-9)
        name = f"{each['claim'].get('variant', 'b').partition('@')[0]}-{number}"
        spread = (high - low) * scale / 3
        sweep[name] = [value + mean * scale + draw.gauss(0.0, spread) for value in sweep[baseline]]
    return baseline, sweep


def _made() -> dict[str, tuple[dict[str, list], dict | None, list[str]]]:
    """Name → a sweep, what its recipe asks, and options."""
    draw = random.Random(7)

    def values(count: int, mean: float, spread: float = 0.02) -> list:
        return [mean + draw.gauss(0.0, spread) for _ in range(count)]

    five = {"a": values(5, 0.5), "b": values(5, 0.6), "c": values(5, 0.49)}
    holes = {"a": [*values(3, 0.5), None, 0.52], "b": [0.6, "absent", 0.61, 0.58, 0.6]}
    sizes = {
        f"{name}@{size}": values(3, mean + gain)
        for size, mean in (("s", 0.4), ("m", 0.5), ("l", 0.6))
        for name, gain in (("a", 0.0), ("b", 0.04))
    }
    looks = {"at_most": 12, "looks": [3, 5, 8, 12]}
    return {
        "equal": ({"a": [0.5] * 4, "b": [0.5] * 4}, None, []),
        "one seed": ({"a": [0.5], "b": [0.7]}, None, []),
        "two seeds": ({"a": values(2, 0.5), "b": values(2, 0.7)}, None, []),
        "lower is better": (five, None, ["--metric", "token_error_rate"]),
        "seeds that diverged or lack": (holes, None, []),
        "many variants": ({"a": values(6, 0.5), **{f"v{i}": values(6, 0.5 + i / 100) for i in range(12)}}, None, []),
        "a ladder": (sizes, None, ["--baseline", "a@l"]),
        "looks, open": ({"a": values(5, 0.5), "b": values(5, 0.51)}, {"seeds": looks}, []),
        "looks, settled": (five, {"seeds": looks, "smallest_effect": 0.01}, LOSS),
        "looks, all": ({"a": values(12, 0.5), "b": values(12, 0.505)}, {"seeds": looks, "smallest_effect": 0.03}, LOSS),
        "open-ended": (five, {"seeds": {"at_most": 40, "open_ended": True}}, []),
        "within the smallest effect": (
            {"a": values(9, 0.5, 0.002), "b": values(9, 0.501, 0.002)},
            {"smallest_effect": 0.01},
            LOSS,
        ),
    }
