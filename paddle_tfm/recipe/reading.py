"""Finding the file of a recipe and reading it, merged with its base. A recipe is data and never code."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path

from paddle_tfm.errors import UserError, unknown
from paddle_tfm.language import _
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.merging import override
from paddle_tfm.recipe.yaml_lines import Origins


@cache
def shipped() -> Mapping[str, Path]:
    """The recipes that come with paddle_tfm: name, with its folder where it has one → file."""
    folder = Path(str(resources.files("paddle_tfm_recipes")))
    return {file.relative_to(folder).with_suffix("").as_posix(): file for file in folder.rglob("*.yaml")}


def find(name: str) -> Path:
    """The file of a recipe: a path, or the name of a shipped one.

    Raises:
        UserError: neither exists; the nearest shipped name is given. Or it is a folder.
    """
    path = Path(name)
    if is_file(path):
        return path
    known = shipped()
    if name in known:
        return known[name]
    with suppress(OSError):  # a name longer than a name can be
        if path.is_dir():
            own = path / "recipe.yaml"
            text = _("{name} is a folder, and a recipe is a file{which}")
            raise UserError(text.format(name=name, which=_(", here {file}").format(file=own) if is_file(own) else ""))
    if path.suffix in (".yaml", ".yml"):
        text = _("{name}: no such file; shipped recipes: {recipes}")
        raise UserError(text.format(name=name, recipes=", ".join(sorted(known))))
    raise UserError(unknown("recipe", name, known))


def is_file(path: Path) -> bool:
    """Whether there is such a file; no, too, where its name is longer than a name can be."""
    try:
        return path.is_file()
    except OSError:
        return False


def read(path: Path) -> tuple[dict, Origins]:
    """The data of a recipe, and where each of its paths was set.

    Raises:
        UserError: it or a base of it is missing, or not YAML.
    """
    return _with_base(path, [])


def _load_file(path: Path) -> tuple[dict, Origins]:
    """What the file itself says. base.yaml, which nearly every recipe begins with, takes longer to parse than most."""
    if path.resolve() not in _shipped_files():
        return yaml_lines.load_file(path, str(path))
    data, origins = _shipped_file(path.resolve(), path.stat().st_mtime_ns if is_file(path) else 0)
    return deepcopy(data), dict(origins)


@cache
def _shipped_files() -> frozenset[Path]:
    return frozenset(file.resolve() for file in shipped().values())


@lru_cache(maxsize=128)
def _shipped_file(path: Path, changed: int) -> tuple[dict, Origins]:
    return yaml_lines.load_file(path, path.name)


def _with_base(path: Path, chain: list[Path]) -> tuple[dict, Origins]:
    if path.resolve() in chain:
        raise UserError(_("{path}: its `base` leads back to itself").format(path=path))
    data, origins = _load_file(path)
    base = data.pop("base", None)
    if base is None:
        return data, origins
    beside, name = path.parent / str(base), Path(str(base)).stem
    if not is_file(beside) and name not in shipped():
        text = _("{path} line {line}: base '{base}' is no file beside it and no shipped recipe")
        raise UserError(text.format(path=path, line=origins["base"][1], base=base))
    merged, merged_origins = _with_base(beside if is_file(beside) else shipped()[name], [*chain, path.resolve()])
    of_its_runs = ("variants", "grid", "ablate", "smallest_effect", "fast", "claims", "ladder", "tune", "equal")
    for key in ("name", "duration", "baseline", *of_its_runs):
        merged.pop(key, None)  # they describe the base's own runs
    for key, value in data.items():
        override(merged, key, value, merged_origins, origins)
    merged_origins[""] = origins.get("", (str(path), 0))
    return merged, merged_origins
