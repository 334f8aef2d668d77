"""In what the facts of two trees differ."""

from __future__ import annotations

LONGEST = 160


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
