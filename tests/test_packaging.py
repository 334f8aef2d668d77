"""What a package index, a citation and a type checker are told of the package is true, and in step."""

import re
import runpy
from importlib import metadata
from pathlib import Path

import setuptools
import yaml

import paddle_tfm
import paddle_tfm_plugins

ROOT = Path(paddle_tfm.__file__).parents[1]


def setup_arguments(monkeypatch) -> dict:
    """What setup.py hands to setuptools."""
    arguments = {}
    monkeypatch.setattr(setuptools, "setup", lambda **options: arguments.update(options))
    runpy.run_path(str(ROOT / "setup.py"))
    return arguments


def test_there_is_one_version(monkeypatch):
    assert setup_arguments(monkeypatch)["version"] == paddle_tfm.__version__
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"] == paddle_tfm.__version__
    assert metadata.version("paddle-tfm") == paddle_tfm.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(rf"^## \[?{re.escape(paddle_tfm.__version__)}\]?", changelog, re.MULTILINE)


def test_the_licence_is_that_of_paddle_and_is_stated_in_spdx():
    described = metadata.metadata("paddle-tfm")
    assert described["License-Expression"] == "Apache-2.0"
    classifiers = described.get_all("Classifier")
    assert not [name for name in classifiers if name.startswith("License ::")]  # PEP 639: one of the two
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert "Apache License" in text and "Version 2.0, January 2004" in text
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["license"] == "Apache-2.0"


def test_links_of_the_readme_work_where_there_is_no_repository(monkeypatch):
    description = setup_arguments(monkeypatch)["long_description"]
    links = re.findall(r"\]\(([^)]*)\)", description)
    assert [link for link in links if not link.startswith(("https://", "http://", "#"))] == []
    readme = (ROOT / "README.md").read_text("utf-8")
    labels = re.findall(r"(?<!!)\[([^][]+)\]\((?!https?://|#)[^)]*\)", readme)
    assert labels and all(label in description for label in labels)  # the words stay
    assert "](docs/" in readme  # and in a clone they are links


def test_type_checkers_see_the_types():
    assert (Path(paddle_tfm.__file__).parent / "py.typed").is_file()
    assert (Path(paddle_tfm_plugins.__path__[0]) / "py.typed").is_file()


def test_every_package_and_data_file_is_in_the_wheel(monkeypatch):
    arguments = setup_arguments(monkeypatch)
    places = {name: Path(arguments["package_dir"].get(name, name.replace(".", "/"))) for name in arguments["packages"]}
    places |= {
        name: Path("plugins") / name.split(".", 1)[1]
        for name in arguments["packages"]
        if name.startswith("paddle_tfm_plugins.")
    }
    assert not [name for name in arguments["packages"] if name.split(".")[0] == "benchmarks"], "of a clone alone"
    modules = {file for place in places.values() for file in (ROOT / place).glob("*.py")}
    for folder in ("paddle_tfm", "plugins", "recipes"):
        assert {file for file in (ROOT / folder).rglob("*.py") if "__pycache__" not in file.parts} <= modules, folder
    data = {
        file
        for name, patterns in arguments["package_data"].items()
        for pattern in patterns
        for file in (ROOT / places[name]).glob(pattern)
    }
    expected = {file for kind in ("*.yaml", "*.in", "*.tsv", "*.mo", "py.typed") for folder in ("paddle_tfm", "plugins", "recipes")
              for file in (ROOT / folder).rglob(kind)}  # fmt: skip
    assert expected == data
