"""A hook of MkDocs: lays the pages for the site side by side in a folder of their own, and rewrites their links.

In the repository, README and others stand at its root and link to sources: to components, recipes, folders. On the site
each linked source is a page too, so that no link leads out of it. The site's search finds pages before sources.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
AT_THE_ROOT = {
    "README.md": "index.md",
    "README.zh-CN.md": "index.zh.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
CHINESE = ".zh-CN.md"
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
ENGLISH_LINK = re.compile(r"\[([^]]+)\]\(([^)\s#]+(?<!\.zh-CN)\.md)(#[^)\s]*)?\)")
SWITCH = re.compile(r"\*\*\[(?:中文|English)\]\([^)]*\)\*\*(?: · )?")  # the site has a menu of languages
# A line of Chinese that continues in the next: browsers would show the break as a space, which Chinese has not.
BROKEN_LINE = re.compile(r"(?<=[\u3001-\u301f\u4e00-\u9fff\uff01-\uff60”])\n *(?=[\u4e00-\u9fff“（《])")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
SOURCE = "---\nsearch: {boost: 0.1}\n---\n"
_folders: list[str] = []


def on_config(config):
    """Stage the pages, and let MkDocs read them there."""
    folder = tempfile.mkdtemp(prefix="paddle-tfm-docs-")
    _folders.append(folder)
    stage(Path(folder))
    config["docs_dir"] = folder
    return config


def on_post_build(config):
    """Remove what `on_config` wrote. (`mkdocs serve` builds again after each change, and stages again.)"""
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)


def stage(folder: Path) -> None:
    """Write every page of the site, and the sources that they link to, below `folder`."""
    pages = site_pages()
    for file, page in pages.items():
        target = folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_rewritten(file, page, pages, folder), encoding="utf-8")
    shutil.copytree(ROOT / "docs/pictures", folder / "pictures")


def site_pages() -> dict[str, str]:
    """File in the repository → page on the site."""
    pages = dict(AT_THE_ROOT)
    for file in sorted((ROOT / "docs").rglob("*.md")):
        name = file.relative_to(ROOT / "docs").as_posix()
        name = re.sub(r"(^|/)README\.md$", r"\1index.md", name).replace(CHINESE, ".zh.md")
        pages[file.relative_to(ROOT).as_posix()] = name
    return pages


def _rewritten(file: str, page: str, pages: dict[str, str], folder: Path) -> str:
    """A page with its links as they are on the site."""

    def link(match: re.Match) -> str:
        before, target, anchor, after = match[1], match[2], match[3] or "", match[4]
        if re.match(r"\w+:", target):
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), target))
        if target.startswith("docs/pictures/"):
            place = target.removeprefix("docs/")
        elif target in pages:  # MkDocs finds the page in the language of the reader
            place = pages[target].replace(".zh.md", ".md")
        else:
            place = _source_page(target, folder)
        return f"{before}{posixpath.relpath(place, posixpath.dirname(page) or '.')}{anchor}{after}"

    def to_english(match: re.Match) -> str:
        """A link from a Chinese page to an English one that is there in Chinese too: the English one is meant."""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), match[2]))
        if target not in pages or target.replace(".md", CHINESE) not in pages:
            return match[0]
        place = posixpath.relpath(pages[target].replace(".md", ".html"), posixpath.join("zh", posixpath.dirname(page)))
        return f'<a href="{place}{match[3] or ""}">{match[1]}</a>'

    parts = CODE.split(SWITCH.sub("", (ROOT / file).read_text("utf-8")))
    if file.endswith(CHINESE):
        parts[::2] = [BROKEN_LINE.sub("", ENGLISH_LINK.sub(to_english, part)) for part in parts[::2]]
    parts[::2] = [LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def _source_page(target: str, folder: Path) -> str:
    """The page that shows a source file, or lists a folder; written if it is not there yet."""
    # Without dots, which would be taken for the name of a language.
    source, place = ROOT / target, f"source/{target.strip('/').replace('.', '-')}.md"
    if not source.exists():
        raise FileNotFoundError(f"a page links to {target}, which is not there")
    page = folder / place
    if not page.exists():
        page.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".ipynb":
            page.write_text(SOURCE + _notebook(source), encoding="utf-8")
            return place
        if source.is_dir():
            names = sorted(path.name for path in source.iterdir() if not path.name.startswith(("_", ".")))
            body = "\n".join(f"- `{name}`" for name in names)
        else:
            language = {".py": "python", ".yaml": "yaml", ".toml": "toml"}.get(source.suffix, "text")
            body = f"````{language}\n{source.read_text('utf-8')}````"
        page.write_text(f"{SOURCE}# {target}\n\n{body}\n", encoding="utf-8")
    return place


def _notebook(source: Path) -> str:
    """A notebook as a page: its texts, and its code in blocks."""
    cells = json.loads(source.read_text("utf-8"))["cells"]
    texts = ("".join(cell["source"]) for cell in cells)
    return "\n\n".join(
        text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```" for cell, text in zip(cells, texts)
    )
