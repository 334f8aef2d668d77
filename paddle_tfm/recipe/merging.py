"""Setting one path of a recipe: how an override, a variant and a recipe with a base alter what stands below them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy

from paddle_tfm.recipe.sites import PER_SITE, STACKS, SUBLAYERS
from paddle_tfm.recipe.yaml_lines import Origins, join

PLACES = (*STACKS, *SUBLAYERS, "source", "target")  # for which a component may be chosen apart
# mappings that are replaced and not merged: their keys are names and paths of their own
WHOLE = ("variants", "grid", "fast", "seeds", "ladder", "equal", "tune", "tune.space", "train.rate_factors")


def override(data: dict, path: str, value: object, origins: Origins, source: Origins) -> None:
    """Set `path` (dotted) to `value`. Mappings merge key by key; a component is replaced when its name is given, and
    keeps its name when only options are."""
    *parents, last = path.split(".")
    section, section_path = data, ""
    for key, following in zip(parents, [*parents[1:], last]):
        section_path = join(section_path, key)
        section[key] = _opened(section_path, section.get(key), [following])
        section = section[key]
        if path in source:
            origins.setdefault(section_path, source[path])
    if path in source:
        origins[path] = source[path]
    if isinstance(value, Mapping) and "name" not in value and path not in WHOLE:
        if not value and last in section:
            return  # nothing to merge
        section[last] = _opened(path, section.get(last), list(value))
        for key, item in value.items():
            child = f"{path}.{key}"
            inherited = {} if child in source or path not in source else {child: source[path]}
            override(data, child, item, origins, {**source, **inherited} if inherited else source)
        return
    for child in _below(path, section.get(last)):
        origins.pop(child, None)
    origins.update({child: source[child] for child in _below(path, value) if child in source})
    section[last] = deepcopy(value)


def _below(path: str, value: object) -> Iterator[str]:
    """The paths of all that a value holds."""
    children: Iterator[tuple[str, object]] = iter(())
    if isinstance(value, Mapping):
        children = ((f"{path}.{key}", item) for key, item in value.items())
    elif isinstance(value, list):
        children = ((f"{path}[{i}]", item) for i, item in enumerate(value))
    for child, item in children:
        yield child
        yield from _below(child, item)


def origins_below(origins: Origins, path: str, value: object) -> Origins:
    """Where what `value` holds, which stands at `path`, was written: path below `path` → line."""
    return {below.removeprefix(f"{path}."): origins[below] for below in _below(path, value) if below in origins}


def _opened(path: str, old: object, keys: Sequence[str]) -> dict:
    """`old` as a mapping that can take `keys`: a component gets options beside its name, or, where the keys are sites,
    is copied to each of them (`model.norm.encoder=batch` leaves the decoder its norm)."""
    component = isinstance(old, str) or (isinstance(old, dict) and "name" in old)
    branches = _branches(path)
    allowed = branches if path == "tokenizer" else (*STACKS, *SUBLAYERS)
    if component and branches and all(key in allowed for key in keys):
        return {branch: deepcopy(old) for branch in branches}
    if isinstance(old, str):
        return {"name": old}
    return old if isinstance(old, dict) else {}


def _branches(path: str) -> tuple[str, ...]:
    """The stacks, sublayers or sides for which the value at `path` may differ, () for most values."""
    parts = path.split(".")
    if parts == ["tokenizer"]:
        return ("source", "target")
    if len(parts) in (2, 3) and parts[0] == "model" and parts[1] in PER_SITE:
        # Not `cross` for positions: cross-attention has one only if it is asked for (`at_site`).
        sublayers = PER_SITE[parts[1]].get(parts[-1], ())
        return STACKS if len(parts) == 2 else tuple(s for s in sublayers if (parts[1], s) != ("position", "cross"))
    return ()


def leaves(overrides: Mapping) -> list[str]:
    """The paths that overrides, path → value, set: down to components and values."""
    return [leaf for override in overrides.items() for leaf, _ in leaf_values(*override)]


def leaf_values(path: str, value: object) -> Iterator[tuple[str, object]]:
    """The paths that an override sets, each with its component or value."""
    if isinstance(value, Mapping) and value and "name" not in value:
        for key, item in value.items():
            yield from leaf_values(f"{path}.{key}", item)
    else:
        yield path, value


def is_replaced(path: str, later: str) -> bool:
    """Whether what was set at `path` is gone once `later` is set: it is that path or stands below it; or above it, and
    `later` is one of its places. (An option of a component leaves the component.)"""
    if f"{path}.".startswith(f"{later}."):
        return True
    return later.startswith(f"{path}.") and later.removeprefix(f"{path}.").split(".")[0] in PLACES
