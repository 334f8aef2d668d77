"""Which changes of a text change the hash of a component's code, and which do not."""

import importlib
import sys

import pytest

from paddle_tfm import component_source, create_registry
from paddle_tfm.component_source import code_hash

FILES = {
    "my_pack/__init__.py": "NORMS = {'mine': 'my_pack.layers.mine:Mine'}\n",
    "my_pack/layers/__init__.py": "def named(): pass\n",
    "my_pack/layers/mine.py": (
        "import my_help.tool\nfrom . import named, _row\nfrom ._base import Base\n"
        "class Mine(Base):\n    def forward(self):\n        from my_pack.late import late\n"
    ),
    "my_pack/layers/_row.py": "ROW = 1\n",
    "my_pack/layers/_base.py": "from .. import deep\nclass Base: pass\n",
    "my_pack/deep.py": "import math\nDEEP = 1\n",
    "my_pack/late.py": "def late(): pass\n",
    "my_pack/layers/other.py": "class Other: pass\n",
    "my_pack/plot.py": "PLOT = 1\n",
    "my_help/__init__.py": "",
    "my_help/tool.py": "TOOL = 1\n",
}
COUNTED = {
    *(f"my_pack/layers/{name}.py" for name in ("__init__", "mine", "_row", "_base")),
    *("my_pack/deep.py", "my_pack/late.py"),
}


@pytest.fixture
def hashed(tmp_path, monkeypatch):
    """A function: some files in place of those above, the package of the plugin → the hash of `Mine`."""
    monkeypatch.syspath_prepend(tmp_path)

    def hashed(changed=None, package="my_pack"):
        for name, text in {**FILES, **(changed or {})}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, "utf-8")
        for name in [name for name in sys.modules if name.startswith(("my_pack", "my_help"))]:
            del sys.modules[name]
        component_source._parsed.cache_clear()
        component_source._not_loaded.cache_clear()
        importlib.invalidate_caches()
        return code_hash(importlib.import_module("my_pack.layers.mine").Mine, package)

    yield hashed
    for name in [name for name in sys.modules if name.startswith(("my_pack", "my_help"))]:
        del sys.modules[name]


@pytest.mark.parametrize("name", FILES)
def test_what_a_class_is_made_of_counts_and_what_lies_beside_it_does_not(name, hashed):
    before = hashed()
    changed = {name: FILES[name] + "# changed\n"}
    after = hashed(changed)
    assert before.startswith("sha256:") and (before != after) == (name in COUNTED)
    assert hashed() == before
    beside = (hashed(package="my_help") != hashed(changed, "my_help")) == (name in {*COUNTED, "my_help/tool.py"})
    assert beside, "what is imported of the package in which the plugin registers counts too"


def test_ours_have_the_hash_of_their_own_file_and_of_what_they_share():
    registry = create_registry()
    hashes = {name: code_hash(registry.entry("norm", name).load()) for name in ("layer", "rms", "batch")}
    assert len(set(hashes.values())) == 3 and all(text.startswith("sha256:") for text in hashes.values())


def test_a_class_of_no_file_has_none():
    cls = type("Loose", (), {"__module__": "nowhere.at_all"})
    assert code_hash(cls) == ""
