"""What is trained: losses and gradients, what finished runs decode, and exports."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

from trees import Said, Task, Tree

import recipes

LISTENER = Path(__file__).with_name("gradients.py")
RUN = "runs/default/seed-1"
SEARCHES = {"greedy": ("greedy", 1), "beam": ("{name: beam, size: 4}", 4)}
SENTENCES = 12


def trained(tree: Tree, names: list[str], finished: bool = False) -> dict[str, Said]:
    """Train these recipes, each in a folder of its name below `trained` or `finished`, but for those that this process
    has trained; returns what was said of the others."""
    above = "finished" if finished else "trained"
    names = [name for name in names if f"{above}/{name}" not in tree.made]
    folders = {name: tree.new_folder(f"{above}/{name}") for name in names}
    for name, folder in folders.items():
        recipes.written(name, folder, finished)
    arguments = ["run", "recipe.yaml", "--out", "runs", "--workers", "1", "--plugin", LISTENER]
    said = tree.commands([Task(arguments, folder) for folder in folders.values()])
    tree.made |= {f"{above}/{name}" for name, each in zip(names, said) if each.status == 0}
    return dict(zip(names, said))


def weights(checkpoint: Path) -> dict[str, str]:
    """Name → hash of type, shape and numbers of each tensor."""
    from safetensors.numpy import load_file

    tensors = load_file(checkpoint / "model.safetensors").items()
    return {name: digest(f"{array.dtype}{array.shape}".encode() + array.tobytes()) for name, array in tensors}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def json_lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


# --------------------------------------------------------------------------------------------------- losses and gradients


def losses(tree: Tree, pinned: dict | None) -> dict[str, object]:
    """Of ten recipes: the log of every step, gradients of the first, weights after the last, scores and predictions."""
    names = tree.chosen(recipes.TEN)
    said = trained(tree, names)
    return {name: _losses(tree.folder / "trained" / name / RUN, said.get(name)) for name in names}


def _losses(run: Path, said: Said | None) -> dict[str, object]:
    if said is not None and said.status:
        return {"status": said.status, "errors": said.errors[-2000:]}
    results = json.loads((run / "results.json").read_text("utf-8"))
    return {
        "status": 0,
        "gradients": json.loads((run / "gradients.json").read_text("utf-8")),
        "log": json_lines(run / "metrics.jsonl"),
        "weights": weights(run / "checkpoints" / "last"),
        "scores": {key: results[key] for key in ("valid", "test", "tests", "parameters", "tokens", "best_step")},
        "predictions": {file.name: digest(file.read_bytes()) for file in sorted(run.glob("predictions*.tsv"))},
    }


# ---------------------------------------------------------------------------------------------------- ids of finished runs


def ids(tree: Tree, pinned: dict | None) -> dict[str, object]:
    """Of four finished runs, by greedy and by beam: outputs, and their scores to the last digit that is shown.

    The working tree decodes the runs that the pinned one has trained; where it cannot read them (no reading of older
    runs is promised), it trains them itself, and their weights must be the same.
    """
    facts: dict[str, object] = {}
    engine = [] if pinned is None else ["--engine", "paddle"]  # the pinned tree's, if it is not asked for another
    names = tree.chosen(recipes.FINISHED)
    others = tree.folder.parent / "pinned" / "finished"
    if pinned is not None and others.is_dir():
        folder = tree.new_folder("decoded")
        for name in names:
            shutil.copytree(others / name, folder / name)
        facts = {name: each for name, each in _decoded(tree, folder, names, engine).items() if not _refused(each)}
    rest = [name for name in names if name not in facts]
    for name, said in trained(tree, rest, finished=True).items():
        if said.status:
            facts[name] = {"status": said.status, "errors": said.errors[-2000:]}
    return facts | _decoded(tree, tree.folder / "finished", [name for name in rest if name not in facts], engine)


def _refused(facts: dict) -> bool:
    return any(search["status"] for search in facts["searches"].values())


def _decoded(tree: Tree, folder: Path, names: list[str], engine: list[str]) -> dict[str, object]:
    tasks = {}
    for name in names:
        run = folder / name / RUN
        lines = (run / "predictions.tsv").read_text("utf-8").splitlines()[1 : SENTENCES + 1]
        texts = folder / name / "sources.txt"
        texts.write_text("".join(line.split("\t")[1] + "\n" for line in lines), "utf-8")
        for search, (spec, count) in SEARCHES.items():
            arguments = ["translate", RUN, "--search", spec, "--nbest", count, "--scores", "--plugin", LISTENER]
            arguments += engine
            tasks[name, search] = Task(arguments, folder / name, texts)
    facts: dict[str, object] = {}
    for (name, search), said in zip(tasks, tree.commands(list(tasks.values()))):
        checkpoint = folder / name / RUN / "checkpoints" / "best"
        of_run = facts.setdefault(name, {"weights": weights(checkpoint), "searches": {}})
        of_run["searches"][search] = {"status": said.status, "outputs": said.out.splitlines()}
    return facts


# -------------------------------------------------------------------------------------------------------------- exports


def exports(tree: Tree, pinned: dict | None) -> dict[str, object]:
    """Of six recipes: written or refused, what the proof counted, and the numbers of the model that was written."""
    names = tree.chosen(recipes.EXPORTED)
    trained(tree, names)
    folders = [tree.folder / "trained" / name for name in names]
    said = tree.commands(
        [Task(["export", RUN, "--to", "ctranslate2", "--plugin", LISTENER], folder) for folder in folders]
    )
    return {
        name: _export(folder / RUN / "export" / "ctranslate2", each) for name, folder, each in zip(names, folders, said)
    }


def _export(folder: Path, said: Said) -> dict[str, object]:
    if not folder.is_dir():
        return {"status": said.status, "written": False, "names": re.findall(r"(\w+ '\w+')", said.errors)}
    page = json.loads((folder / "paddle_tfm.json").read_text("utf-8"))
    return {
        "status": said.status,
        "written": True,
        "proof": page.get("proof"),
        "model": digest((folder / "model.bin").read_bytes()),
        "files": sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()),
    }
