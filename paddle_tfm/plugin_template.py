"""A new plugin, from the files in `templates/`: an installable package, or one file."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from pathlib import Path
from string import Template

from paddle_tfm.errors import UserError

TEMPLATES = Path(__file__).parent / "templates"
WHAT = {
    "attention": "attention",
    "norm": "norm",
    "placement": "placement",
    "position": "positional encoding",
    "feed_forward": "feed-forward sublayer",
    "head": "head",
}


@dataclass(frozen=True)
class NewPlugin:
    """The files, and what to do next."""

    files: tuple[Path, ...]
    advice: str


def write(name: str, kind: str, single_file: bool = False, out: Path | None = None) -> NewPlugin:
    """Write a plugin called `name` (letters, digits, - and _).

    Args:
        kind: one of `WHAT`. out: the folder, or the file with `single_file`; default: by the name, here.
    Raises:
        UserError: the name cannot be a package's, or something is there already.
    """
    words = {"project": name, "module": name.replace("-", "_"), "kind": kind, "what": WHAT[kind]}
    words["Class"] = "".join(part.capitalize() for part in words["module"].split("_"))
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name) or keyword.iskeyword(words["module"]):
        raise UserError(f"'{name}' cannot be a plugin's name: small letters, digits, - and _, a letter first")
    component = _filled(f"component/{kind}.py", words)
    if single_file:
        file = out or Path(f"{words['module']}.py")
        _write({file: _single(component, words)})
        return NewPlugin(
            (file,), _advice(f"plugin check {file}", f"run reverse model.{kind}={words['module']} --plugin {file}")
        )
    folder = out or Path(name)
    files = {
        folder / "pyproject.toml": _filled("package/pyproject.toml", words),
        folder / words["module"] / "__init__.py": _filled("package/__init__.py", words),
        folder / words["module"] / f"{words['module']}.py": component,
        folder / "tests" / f"test_{words['module']}.py": _filled("package/test.py", words),
        folder / "recipe.yaml": _filled("package/recipe.yaml", words),
        folder / "README.md": _filled("package/README.md", words),
    }
    _write(files)
    advice = _advice(f"plugin check {words['module']}", f"run {folder / 'recipe.yaml'}")
    return NewPlugin(tuple(files), f'pip install -e "{folder}[test]"\n{advice}')


def _advice(check: str, run: str) -> str:
    width = max(len(check), len(run)) + 13
    return f"{f'paddle-tfm {check}':<{width}}# is it right?\n{f'paddle-tfm {run}':<{width}}# is it better?"


def _filled(template: str, words: dict[str, str]) -> str:
    return Template((TEMPLATES / f"{template}.in").read_text(encoding="utf-8")).substitute(words)


def _single(component: str, words: dict[str, str]) -> str:
    """The component and its hook in one file; the import of the marker stands with the others."""
    whole = _filled("package/single.py", {**words, "component": component})
    return whole.replace("from paddle_tfm.", "from paddle_tfm import hookimpl\nfrom paddle_tfm.", 1)


def _write(files: dict[Path, str]) -> None:
    for path in files:
        if path.exists():
            raise UserError(f"{path} is there already; choose another name, or --out")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
