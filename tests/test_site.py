"""The pages as a site: every link leads somewhere, every page is reached from README in two clicks, in both languages."""

import importlib.util
import json
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
HOOK = ROOT / "docs/mkdocs_hook.py"
PAGES = sorted(
    [*(path.name for path in ROOT.glob("*.md")), *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
)  # fmt: skip
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location("mkdocs_hook", HOOK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def staged(hook, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    hook.stage(folder)
    return folder


def linked(file, text):
    """What a page links to in this repository or on this site."""
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    targets = (target for target in LINK.findall(text) if not re.match(r"\w+:", target))
    return {posixpath.normpath(posixpath.join(posixpath.dirname(file), target)) for target in targets}


@pytest.mark.parametrize("start", ["README.md", "README.zh-CN.md"])
def test_every_page_is_two_clicks_from_readme(start):
    """Those in English from README.md, those in Chinese from README.zh-CN.md."""
    reached = {start}
    for _ in range(2):
        reached |= {
            page for file in reached if file in PAGES for page in linked(file, (ROOT / file).read_text("utf-8"))
        }
    chinese = start.endswith(".zh-CN.md")
    expected = [page for page in PAGES if page.endswith(".zh-CN.md") == chinese]
    assert [page for page in expected if page not in reached] == []


def test_every_page_of_the_repository_is_on_the_site(staged, hook):
    assert sorted(hook.site_pages()) == PAGES
    for page in hook.site_pages().values():
        assert (staged / page).is_file()


def test_every_link_of_the_site_leads_somewhere(staged):
    files = {path.relative_to(staged).as_posix() for path in staged.rglob("*") if path.is_file()}
    for file in sorted(name for name in files if name.endswith(".md") and not name.startswith("source/")):
        missing = linked(file, (staged / file).read_text("utf-8")) - files
        assert not missing, f"{file} links to {sorted(missing)}"


def test_a_source_is_shown_as_it_is(staged):
    shown = (staged / "source/plugins/norm/rms-py.md").read_text("utf-8")
    assert (ROOT / "plugins/norm/rms.py").read_text("utf-8") in shown


def test_lines_of_chinese_are_joined_and_paragraphs_are_not(staged):
    """`好，\\n世界` would be shown as `好， 世界`. Headings, items and tables stay on lines of their own."""
    for page in PAGES:
        if not page.endswith(".zh-CN.md"):
            continue
        file = staged / (
            "index.zh.md" if page == "README.zh-CN.md" else page.removeprefix("docs/").replace(".zh-CN", ".zh")
        )
        original, shown = (
            re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
            for path in (ROOT / page, file)
        )
        assert not re.search(r"[\u4e00-\u9fff，。；：、]\n *[\u4e00-\u9fff]", shown), page
        for start in (r"^#+ ", r"^ *(?:-|\d+\.) ", r"^\|"):
            assert len(re.findall(start, shown, re.MULTILINE)) == len(re.findall(start, original, re.MULTILINE)), page


def test_code_is_not_rewritten(staged):
    """A link within code is text: the plugins page has `x[:, 0](y)`-like code only if nobody touched it."""
    original = re.findall(r"^```.*?^```$", (ROOT / "docs/plugins.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert original == re.findall(r"^```.*?^```$", (staged / "plugins.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)


def test_no_page_opens_a_marked_section_of_html():
    """`<![` begins one for `html.parser`, which MkDocs reads pages with, inside a code span too: Python 3.11.7 and others
    then fail to build the site. Fenced code is taken out before."""
    for page in PAGES:
        prose = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        assert "<![" not in prose, page


def test_the_menu_is_translated_whole():
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)
    config = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader)
    (languages,) = [plugin["i18n"]["languages"] for plugin in config["plugins"] if "i18n" in plugin]
    titles = {title for section in config["nav"] for title in section}
    titles |= {
        title for section in config["nav"] for (pages,) in [section.values()] for page in pages for title in page
    }
    assert set(languages[1]["nav_translations"]) == titles


@pytest.mark.pages
@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs the extra [docs]")
def test_the_site_builds_strictly_and_fetches_nothing(tmp_path):
    """Strict: a link or an anchor that leads nowhere is an error. Nothing is loaded from another host."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in ("index.html", "zh/index.html", "plugins.html", "zh/plugins.html"):
        html = (tmp_path / "site" / page).read_text("utf-8")
        assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"https?:", html), page
    landing, chinese = ((tmp_path / "site" / page).read_text("utf-8") for page in ("index.html", "zh/index.html"))
    assert chinese.count("写一个插件") > 0
    for html in (landing, chinese):  # the first screen of README: a command, a picture, a result
        first = html.partition("<article")[2].partition("<h2")[0]
        assert "paddle-tfm run quickstart" in first and "quickstart.png" in first and "83.4%" in first
    search = json.loads((tmp_path / "site/search/search_index.json").read_text("utf-8"))
    assert search["config"]["lang"] == ["en", "zh"]
    texts = {page["location"]: page["text"] for page in search["docs"]}
    assert "\u200b" in texts["zh/how-do-i.html"] and "command" in texts["how-do-i.html"]  # words of Chinese
    assert all(page["boost"] < 1 for page in search["docs"] if page["location"].startswith("source/"))
    shutil.rmtree(tmp_path / "site")
