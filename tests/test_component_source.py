"""What is read from a component's source is what its class says, for every component that ships."""

import re
import subprocess
import sys

import pytest

from paddle_tfm.component_source import ComponentSource, kind_of_annotation, recipe_text
from paddle_tfm.components import Entry
from paddle_tfm.errors import RecipeError
from paddle_tfm.options import component_kind, options_of, parameters
from paddle_tfm.plugins import Provider
from paddle_tfm.protocols import LayerSite

OUTSIDE = {"above 0": 0, "at least 0": -1, "at least 1": 0, "at least 2": 1}
BEYOND = {"(0, 1]": 1.5, "[0, 1)": 1.0, "(0, 0.001]": 0.01, "[0, inf)": -0.5, "[0, 1]": 2.0}
SITE = LayerSite("decoder", "self", 0, 2, 2)
GIVENS = {"d_model": 8, "num_heads": 2, "head_dim": 4, "max_length": 16, "site": SITE, "steps": 100, "d_ff": 16}


@pytest.fixture(scope="module")
def entries(registry):
    return list(registry)


def test_options_with_defaults_are_those_of_the_constructor(entries):
    for entry in entries:
        cls, source = entry.load(), ComponentSource(entry.target)
        options = options_of(cls)
        assert list(source.options()) == list(options), (entry.kind, entry.name)
        assert list(source.parameters()) == list(parameters(cls))
        for name, option in options.items():
            read = source.options()[name]
            assert read.required == option.required
            assert option.required or read.default == recipe_text(option.default), (entry.name, name)
            expected = component_kind(option.annotation)
            assert kind_of_annotation(read.annotation, entry.target) == (expected[0] if expected else "")


def test_givens_failures_and_docstrings_are_those_of_the_class(entries):
    for entry in entries:
        cls, source = entry.load(), ComponentSource(entry.target)
        assert source.value("expected_failures", {}) == dict(cls.expected_failures), entry.name
        assert set(source.filled()) == set(cls.givens) & set(parameters(cls)), entry.name
        assert " ".join(source.docstring.split()) == " ".join(cls.__doc__.split()), entry.name
        protocol = source.protocol
        assert protocol is not None and protocol.node.name in {base.__name__ for base in cls.__mro__}


def test_a_value_beyond_what_the_source_says_is_refused(registry, entries):
    tried = 0
    for entry in entries:
        if entry.kind not in ("norm", "position", "search", "schedule", "optimizer"):
            continue
        source = ComponentSource(entry.target)
        required = [option for option in source.options().values() if option.required and option.name not in GIVENS]
        for name, option in source.options().items():
            interval = re.search(r"in ([(\[].*[)\]])", option.rule)
            value = BEYOND.get(interval[1]) if interval else OUTSIDE.get(option.rule)
            if value is None or required:
                continue
            whole = option.annotation.startswith("int")
            with pytest.raises(RecipeError, match=name):
                registry.build(entry.kind, {"name": entry.name, name: int(value) if whole else float(value)}, **GIVENS)
            tried += 1
    assert tried > 40


def test_nothing_is_imported_to_read_it():
    program = (
        "import sys\nfrom paddle_tfm.component_source import ComponentSource as S\n"
        "for target in ('paddle_tfm_plugins.norm.batch:BatchNorm', 'paddle_tfm_plugins.search.beam:Beam'):\n"
        "    print(*S(target).options())\n"
        "print(sorted({'paddle', 'paddle_tfm_plugins.norm', 'paddle_tfm.protocols'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    *options, modules = done.stdout.splitlines()
    assert options == [
        "eps momentum population",
        "size alpha max_ratio max_extra min_length max_length no_repeat_ngram",
    ]
    assert modules == "[]"


def test_a_class_of_a_file_and_one_without_source(tmp_path):
    class Local:
        """A class that is no module's."""

    assert not ComponentSource(Local)
    assert not ComponentSource("no_such_package.module:Thing") and not ComponentSource("paddle_tfm.errors:Nothing")
    assert ComponentSource("no_such_package.module:Thing").options() == {}
    assert Entry("norm", "local", Local, Provider("p", "", "")).summary() == "A class that is no module's."
