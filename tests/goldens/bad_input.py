"""Bad input: of what is said only what a user steers by, so that wording may change: status, paths of settings, lines,
files, options, and the nearest names."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import trainings
from trees import Said, Task, Tree

HEAD = "base: base.yaml\nname: mine\nsummary: mine\n"  # lines 1 to 3 of each recipe
SECTIONS = "model|train|evaluate|task|search|vocabulary|tokenizer|seeds|variants|grid|tune|claims|ladder|equal|baseline|requires"
NAMED = {
    "paths": rf"(?<![\w./-])(?:{SECTIONS})(?:\.[\w-]+|\[\d+\])+",
    "lines": r"\bline \d+",
    "files": r"[\w.-]+\.(?:yaml|py|tsv|jsonl|json|safetensors|txt|gz|en|de|tmx)\b",
    "options": r"(?<![\w-])--[a-z][\w-]*",
    "nearest": r"did you mean (?:the place )?'([^']+)'",
}
RECIPES = {
    "unknown section": "modle: {d_model: 8}",
    "unknown key": "model: {d_modle: 8}",
    "unknown component": "model: {position: ropee}",
    "unknown option": "model: {norm: {name: layer, epz: 1.0}}",
    "missing option": "model: {position: chain}",
    "option of a wrong type": "model: {norm: {name: layer, eps: small}}",
    "option out of range": "search: {name: beam, size: 0}",
    "wrong type": "train: {steps: many}",
    "no layers": "model: {encoder_layers: 0, decoder_layers: 0}",
    "metrics of outputs for a decoder alone": "model: {encoder_layers: 0}",
    "tuning of no setting": "tune: {space: {train.schedule.peek: [1.0e-3, 2.0e-3]}, trials: 2}",
    "a look beyond the last seed": "seeds: {at_most: 5, looks: [3, 8]}\nvariants: {a: {}, b: {model.norm: rms}}",
    "a ladder that goes down": "ladder: {sizes: {l: {model.d_ff: 64}, s: {model.d_ff: 32}}}\nvariants: {a: {}, b: {model.norm: rms}}",
    "heads that do not divide": "model: {d_model: 30, num_heads: 4}",
    "odd rotary dimension": "model: {d_model: 20, position: rotary}",
    "ALiBi on linear attention": "model: {attention: linear, position: alibi}",
    "a placement without its inner norm": "model: {placement: sub_ln, attention: single_head}",
    "unknown metric as best": "evaluate: {best: blue}",
    "unknown baseline": "baseline: pst\nvariants: {pre: {}, post: {model.placement: post}}",
    "wrong setting in a variant": "variants:\n  a: {}\n  b: {model.placement: prae}",
    "a plugin that is missing": "requires: [pluto]",
    "embeddings shared alone": "model: {share_embeddings: true}",
    "a key twice": "seeds: [1]\nseeds: [2]",
    "no YAML": "model: {d_model: 8",
    "a tag that would run code": "model: !!python/object/apply:os.system ['true']",
    "a place misspelled beside a component": "model: {norm: {name: rms, dekoder: layer}}",
    "a table larger than any memory": "model: {position: {name: shaw, clip: 1000000000}}",
    "a claim on no variant": "variants: {a: {}, b: {model.norm: rms}}\nclaims: {c: {says: s, source: of our own, metric: loss, variant: bb, over: a, below: 0}}",
    "two problems": "model: {norm: layr}\ntrain: {steps: x}",
}
CORPORA: dict[str, tuple[dict[str, bytes], str]] = {
    "unequal numbers of lines": ({"a.en": b"one\ntwo\n", "a.de": b"eins\n"}, "[a.en, a.de]"),
    "not UTF-8": ({"a.tsv": b"one\teins\ntwo\t\xff\n"}, "a.tsv"),
    "an empty file": ({"a.tsv": b""}, "a.tsv"),
    "a column missing": ({"a.tsv": b"one\teins\nonly\n"}, "a.tsv"),
    "a file missing": ({}, "a.tsv"),
    "not gzip": ({"a.tsv.gz": b"one\teins\n"}, "a.tsv.gz"),
    "not JSON": ({"a.jsonl": b"one\n"}, "a.jsonl"),
}
PLUGINS = {
    "syntax": "def broken(:\n",
    "an import": "\nimport no_such_module_here\n",
    "a misspelt hook": "from paddle_tfm import hookimpl\n@hookimpl\ndef register_norm():\n    return {}\n",
    "a name that is taken": "from paddle_tfm import hookimpl\n@hookimpl\ndef register_norms():\n    return {'layer': 'a:B'}\n",
}
COMMANDS = {
    "no such verb": ["trian", "reverse"],
    "no such recipe": ["check", "quickstrat"],
    "no such file": ["run", "nowhere/mine.yaml"],
    "no value": ["check", "base", "model.norm"],
    "a broken value": ["check", "base", "model.norm={name"],
    "a device": ["run", "base", "--device", "tpu"],
    "seeds": ["run", "base", "--seeds", "none"],
    "an unknown option": ["run", "base", "--seedss", "3"],
    "a component to show": ["show", "norm:layr"],
    "a component to check": ["plugin", "check", "rotry"],
    "a check": ["plugin", "check", "norm:layer", "--only", "causall"],
    "a kind of plugin": ["plugin", "new", "x", "--kind", "nrom"],
    "a copy over a file": ["cp", "quickstart", "recipe.yaml", "--summary", "mine"],
    "no run to compare": ["compare", "nowhere"],
    "no run to translate with": ["translate", "nowhere", "a"],
    "an engine to export to": ["export", "nowhere", "--to", "onnx"],
}
RUNS: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "weights cut short": (lambda run: _cut(run / "checkpoints/best/model.safetensors"), ["translate", "a"]),
    "weights missing": (lambda run: (run / "checkpoints/best/model.safetensors").unlink(), ["evaluate"]),
    "a recipe that is no YAML": (lambda run: (run / "recipe.yaml").write_text("{", "utf-8"), ["translate", "a"]),
    "a vocabulary cut short": (lambda run: _cut(run / "codec/target/vocabulary.json"), ["translate", "a"]),
    "results cut short": (lambda run: _cut(run / "results.json"), ["compare"]),
    "a search that is none": (lambda run: None, ["translate", "a", "--search", "baem"]),
    "a split that is none": (lambda run: None, ["evaluate", "--split", "trian"]),
    "a metric that is none": (lambda run: None, ["compare", "--metric", "blue"]),
}


def bad_inputs(tree: Tree, pinned: dict | None) -> dict[str, object]:
    """What is said of each."""
    tasks = {}
    for name, text in RECIPES.items():
        tasks[f"recipe: {name}"] = Task(
            ["check", "mine.yaml"], _folder(tree, {"mine.yaml": (HEAD + text + "\n").encode()}, len(tasks))
        )
    for name, (files, value) in CORPORA.items():
        task = f"task={{name: parallel, train: {value}, valid: {value}}}"
        tasks[f"corpus: {name}"] = Task(["check", "base", task], _folder(tree, files, len(tasks)))
    for name, text in PLUGINS.items():
        tasks[f"plugin: {name}"] = Task(
            ["check", "base", "--plugin", "mine.py"], _folder(tree, {"mine.py": text.encode()}, len(tasks))
        )
    for name, arguments in COMMANDS.items():
        tasks[f"command: {name}"] = Task(arguments, _folder(tree, {"recipe.yaml": HEAD.encode()}, len(tasks)))
    asked = tree.chosen(f"run: {name}" for name in RUNS)
    trainings.trained(tree, ["plain"] if asked else [])
    for name, (damage, (verb, *rest)) in RUNS.items() if asked else ():
        folder = _folder(tree, {}, len(tasks))
        shutil.copytree(tree.folder / "trained" / "plain" / trainings.RUN, folder / "run")
        damage(folder / "run")
        tasks[f"run: {name}"] = Task([verb, "run", *rest], folder)
    names = tree.chosen(tasks)
    return dict(zip(names, map(said_of, tree.commands([tasks[name] for name in names]))))


def said_of(said: Said) -> dict[str, object]:
    """What a user steers by."""
    text = said.errors.partition("shipped recipes:")[0]
    named = {what: sorted(set(re.findall(pattern, text))) for what, pattern in NAMED.items()}
    return {"status": said.status, "traceback": "Traceback" in said.errors + said.out, **named}


def _folder(tree: Tree, files: dict[str, bytes], number: int) -> Path:
    folder = tree.new_folder(f"bad-input/{number}")
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
