"""Every class below tests/conformance that is wrong, or right in an unusual way, and what the conformance kit says of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from trees import Tree

ITEMS = "items.json"
READ = ("paddle_tfm/**/*.py", "plugins/**/*.py", "tests/conformance/**/*.py")  # what the outcome can depend on


def kit(tree: Tree, pinned: dict | None) -> dict[str, object]:
    """Name → what was said. A class that is in the pinned tree alone is judged by its source there.

    Each outcome is written as it comes, and a new start continues there as long as the tree's files are the same.
    """
    items = {item["name"]: item for item in _items(tree)}
    others = tree.folder.parent / "pinned" / ITEMS
    if pinned is not None and others.is_file():
        items = {item["name"]: item for item in json.loads(others.read_text("utf-8"))} | items
    names = sorted(tree.chosen(items), key=lambda name: hashlib.sha256(name.encode()).digest())[:: tree.every]
    return _judged(tree, [items[name] for name in names])


def _items(tree: Tree) -> list[dict]:
    file = tree.folder / ITEMS
    if status := tree.adapter("items", tree.root, file).wait():
        raise SystemExit(f"{tree.root}: the classes below tests/conformance are not found: status {status}")
    return json.loads(file.read_text("utf-8"))


def _judged(tree: Tree, items: list[dict]) -> dict[str, object]:
    lines = tree.folder / f"kit-{_hash(tree.root)}.jsonl"
    lines.touch()
    done = _read(lines)
    while rest := [item for item in items if item["name"] not in done]:
        processes, parts = [], [rest[number :: tree.jobs] for number in range(tree.jobs)]
        for number, part in enumerate(parts):
            file = tree.folder / f"items-{number}.json"
            file.write_text(json.dumps(part), "utf-8")
            processes.append(tree.adapter("judge", file, lines))
        statuses = [process.wait() for process in processes]
        done = _read(lines)
        for part, status in zip(parts, statuses):
            first = next((item["name"] for item in part if item["name"] not in done), None)
            if first is not None:  # it ended its process
                with lines.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"name": first, "facts": {"not judged": f"status {status}"}}) + "\n")
        done = _read(lines)
    return {item["name"]: done[item["name"]] for item in items}


def _read(lines: Path) -> dict[str, object]:
    rows = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    return {row["name"]: row["facts"] for row in rows}


def _hash(root: Path) -> str:
    files = [file for pattern in READ for file in sorted(root.glob(pattern))]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:12]
