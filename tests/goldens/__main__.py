"""Whether the working tree still does what a pinned commit did, to the bit, through a time in which much is moved and
deleted. One command, beside a worktree of that commit:

    git worktree add ../pinned fa9c0f78
    python tests/goldens ../pinned --keep ../goldens

Each part is done by either tree with its own packages, one after the other on this machine; what the pinned one gave is
kept and not done again. A line for each case that differs, then a table; exit status 1 if any differs.

    losses     20 steps of ten recipes of every kind of component: losses, first gradients, weights, predictions
    ids        what four finished runs decode, by greedy and by beam, with scores
    compare    verdicts and intervals: recorded runs, sweeps after the recorded findings, looks, ladders, claims, bootstrap
    bad-input  what is wrong, said of 64 inputs: status, paths, lines, options and nearest names, not the wording
    export     what is written for CTranslate2 of four recipes, and refused of two
    kit        every wrong and right class below tests/conformance, caught or passed; the pinned tree's, where one is gone

Seconds of a CPU with one thread, for one tree (both trees once, then the working one alone):

    losses 20 · ids 40, or 10 where it reads the pinned runs · compare 80 · bad-input 35 · export 30 · kit 1300

`--only PART` and `--case TEXT` choose. `--jobs 2` divides the classes of `kit` among two processes, `--every 10` takes
a tenth of them; it continues where it was interrupted, as long as the tree is the same. One call at a time for one
folder `--keep`. Only `adapter.py` imports from `paddle_tfm`. This folder goes when the moving is over.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from pathlib import Path

import bad_input
import comparisons
import kit
import trainings
from trees import Tree

ROOT = Path(__file__).resolve().parents[2]
PARTS = {
    "losses": trainings.losses,
    "ids": trainings.ids,
    "compare": comparisons.comparisons,
    "bad-input": bad_input.bad_inputs,
    "export": trainings.exports,
    "kit": kit.kit,
}
SHOWN, LONGEST = 3, 160  # differences of a case; characters of a value


def main() -> int:
    options = _options()
    keep = options.keep.resolve()
    shared = (options.pinned, options.jobs, options.every, options.case)
    pinned = Tree(options.pinned, options.python_pinned, keep / "pinned", *shared)
    working = Tree(ROOT, options.python_working, keep / "working", *shared)
    rows = []
    for part in options.only or PARTS:
        kept = keep / f"{part}-{pinned.commit()[:12]}.json"
        if kept.is_file():
            before = json.loads(kept.read_text("utf-8"))
        else:
            before = _timed(part, pinned, None)
            if pinned.is_whole:
                kept.write_text(json.dumps(before, indent=1), "utf-8")
        after = _timed(part, working, before["facts"])
        (keep / f"{part}-working.json").write_text(json.dumps(after, indent=1), "utf-8")
        asked = before["facts"] if working.is_whole else {name: before["facts"].get(name) for name in after["facts"]}
        rows.append((part, *_compared(part, asked, after["facts"]), before["seconds"], after["seconds"]))
    print(f"\n{'part':10} {'cases':>6} {'same':>6} {'differ':>6} {'pinned':>9} {'working':>9}")
    for part, cases, differ, *seconds in rows:
        print(f"{part:10} {cases:6} {cases - differ:6} {differ:6} {seconds[0]:7.0f} s {seconds[1]:7.0f} s")
    return int(any(differ for _, _, differ, *_ in rows))


def _timed(part: str, tree: Tree, pinned: dict | None) -> dict:
    """What a tree does, and how many seconds of a CPU it took."""
    print(f"{part}: {tree.root}", file=sys.stderr, flush=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    facts = PARTS[part](tree, pinned)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "facts": json.loads(json.dumps(facts))}


def _compared(part: str, pinned: dict, working: dict) -> tuple[int, int]:
    """The number of cases, and of those that differ, each of which is printed."""
    differ = 0
    for case, facts in pinned.items():
        found = differences(facts, working[case]) if case in working else ["gone"]
        differ += bool(found)
        if found:
            more = f" (and {len(found) - SHOWN} more)" if len(found) > SHOWN else ""
            print(f"{part:10} {case}: differs: {'; '.join(found[:SHOWN])}{more}", flush=True)
    return len(pinned), differ


def differences(pinned: object, working: object, path: str = "") -> list[str]:
    """`path: pinned ≠ working` for each value that differs. What the working tree says beyond the pinned one is not one,
    but in lists."""
    if isinstance(pinned, dict) and isinstance(working, dict):
        found = []
        for key in pinned:
            here = f"{path}.{key}" if path else str(key)
            found += differences(pinned[key], working[key], here) if key in working else [f"{here}: gone"]
        return found
    if isinstance(pinned, list) and isinstance(working, list):
        if len(pinned) != len(working):
            return [f"{path}: {len(pinned)} ≠ {len(working)} of them; {_short(pinned)} ≠ {_short(working)}"]
        pairs = enumerate(zip(pinned, working))
        return [each for number, (a, b) in pairs for each in differences(a, b, f"{path}[{number}]")]
    return [] if pinned == working else [f"{path}: {_short(pinned)} ≠ {_short(working)}"]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python tests/goldens", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("pinned", type=Path, help="a worktree of the pinned commit")
    parser.add_argument("--only", action="append", choices=list(PARTS), help="this part (repeatable)")
    parser.add_argument("--python-pinned", default=sys.executable, help="its interpreter (default: this one)")
    parser.add_argument("--python-working", default=sys.executable, help="the working tree's (default: this one)")
    parser.add_argument("--keep", type=Path, default=ROOT.parent / "goldens", help="where runs and results go")
    parser.add_argument("--jobs", type=int, default=1, help="processes for the part kit")
    parser.add_argument("--case", default="", metavar="TEXT", help="the cases alone that have this in their names")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="of the classes of kit, every N-th")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
