"""Components are found by name, checked with a sentence, and built with exactly what they declare."""

from __future__ import annotations

import subprocess
import sys
import types
from typing import Literal

import pluggy
import pytest
from paddle import nn

from paddle_tfm import create_registry, hookspecs
from paddle_tfm.components import Spec
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.hookspecs import KINDS, hookimpl
from paddle_tfm.options import parameters
from paddle_tfm.plugins import Plugins
from paddle_tfm.protocols import Norm, PositionalEncoding, Task
from paddle_tfm.registry import Registry


class Everything(Norm):
    """All givens, and options of many types.

    Not part of the summary.
    """

    def __init__(self, d_model: int, site: str, eps: float = 1e-6, bias: bool = True, groups: int | None = None):
        super().__init__()
        self.got = {"d_model": d_model, "site": site, "eps": eps, "bias": bias, "groups": groups}


class Little(Norm):
    """No given at all."""

    def __init__(self, factor: float):
        super().__init__()
        if factor <= 0:
            raise ValueError(f"`factor` must be positive, but is {factor}")
        self.factor = factor


class Bare(Norm):
    """No constructor of its own."""


class Inner(PositionalEncoding):
    def __init__(self, d_model: int, head_dim: int, base: float = 10.0):
        super().__init__()
        if base == 13:
            raise ValueError("`base` must not be 13")
        self.got = (d_model, head_dim, base)


class Outer(PositionalEncoding):
    def __init__(self, d_model: int, parts: list[PositionalEncoding], first: PositionalEncoding | None = None):
        super().__init__()
        self.d_model, self.parts, self.first = d_model, list(parts), first


class Typed(Task):
    def __init__(
        self,
        pair: tuple[int, int] = (0, 0),
        names: set[str] = frozenset(),
        rows: list[list[str]] | None = None,
        mode: Literal["sum", "mean"] = "sum",
        ranges: dict[str, tuple[int, int]] | None = None,
        anything=None,
        odd: nn.Layer | None = None,
        text: str = "",
    ):
        self.got = {"pair": pair, "names": names, "rows": rows, "mode": mode, "ranges": ranges, "anything": anything}


def function():
    """No class."""


class Constant:
    kind = "schedule"


REGISTERED = {
    "norm": {
        "everything": Everything,
        "little": Little,
        "bare": Bare,
        "absent": "no_such_package.at_all:Norm",
        "no_attribute": "paddle_tfm.registry:Norms",
        "no_class": f"{__name__}:function",
        "no_colon": "paddle_tfm.registry",
        "bystander": Constant,
        "lazy": "paddle_tfm_plugins.norm.rms:RMSNorm",
    },
    "position": {"inner": Inner, "outer": Outer},
    "task": {"typed": Typed},
    "schedule": {"constant": Constant},
}


@pytest.fixture(scope="module")
def registry() -> Registry:
    plugin = types.ModuleType("mine")
    for kind, components in REGISTERED.items():
        setattr(plugin, KINDS[kind], hookimpl(lambda components=components: components))
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(plugin, name="mine")
    return Registry(Plugins(manager))


def problems(registry, kind: str, spec, path: str = "here") -> list[tuple[str, str]]:
    return [(problem.path, problem.message) for problem in registry.resolve(kind, spec, path).problems]


# ----------------------------------------------------------------------------------------------------------- building


def test_only_declared_givens_are_handed(registry):
    givens = {"d_model": 8, "site": "there", "max_length": 99, "unheard_of": 1}
    assert registry.build("norm", "everything", **givens).got == {
        "d_model": 8, "site": "there", "eps": 1e-6, "bias": True, "groups": None,
    }  # fmt: skip
    assert registry.build("norm", {"name": "little", "factor": 2}, **givens).factor == 2.0
    assert isinstance(registry.build("norm", "bare", **givens), Bare)
    assert isinstance(registry.build("schedule", "constant", steps=3), Constant)


def test_what_the_model_gives_is_no_option_but_for_a_few_that_may_differ_by_place(registry):
    (problem,) = problems(registry, "norm", {"name": "everything", "d_model": 4, "groups": 2})
    assert "'everything' gets 'd_model' from the model; it is no option" in str(problem)
    head = {"name": "linear", "pad_id": 9}  # label smoothing would leave out the wrong token
    shipped = create_registry()
    assert "gets 'pad_id' from the model" in str(problems(shipped, "head", head))
    built = shipped.build("feed_forward", {"name": "relu", "d_ff": 6}, d_model=4, d_ff=8, dropout=0.0)
    assert {tuple(p.shape) for p in built.parameters() if p.ndim == 2} == {(4, 6), (6, 4)}


def test_a_class_of_another_kind_is_refused(registry):
    (problem,) = problems(registry, "norm", "bystander")
    assert "'bystander' is no norm" in str(problem)


def test_a_missing_given_is_named(registry):
    with pytest.raises(RecipeError, match="'everything' needs 'site', which is not given here"):
        registry.build("norm", "everything", "model.norm", d_model=8)


def test_a_spec_is_a_name_or_a_mapping_with_a_name(registry):
    assert Spec.parse("rms") == Spec("rms", {})
    assert Spec.parse({"name": "rms", "eps": 1}) == Spec("rms", {"eps": 1})
    assert Spec.parse(Spec("rms")) == Spec("rms")
    for wrong in (3, None, ["rms"], {"eps": 1}, {"name": 3}):
        (problem,) = problems(registry, "norm", wrong)
        assert problem == ("here", f"must be a name or {{name: …, options…}}, but is {wrong!r}")


# ----------------------------------------------------------------------------------------------------------- options


def test_an_unknown_name_has_a_suggestion_and_a_list(registry):
    (problem,) = problems(registry, "position", "iner", "model.position")
    plugin = "; where a plugin has it, install that plugin or pass --plugin FILE.py"
    sentence = f"unknown position 'iner'; did you mean 'inner'? Known: inner, outer{plugin}"
    assert problem == ("model.position", sentence)
    assert problems(registry, "head", "tied")[0][1] == f"unknown head 'tied'. Known: none{plugin}"


def test_an_unknown_option_has_a_suggestion_and_the_options(registry):
    (problem,) = problems(registry, "norm", {"name": "everything", "epz": 1}, "model.norm")
    assert problem == (
        "model.norm.epz",
        "'everything' has no option 'epz'; did you mean 'eps'? Its options: bias, eps, groups",
    )
    (problem,) = problems(registry, "norm", {"name": "bare", "epz": 1})
    assert problem[1] == "'bare' has no option 'epz'. Its options: none"


def test_a_required_option_is_asked_for(registry):
    assert problems(registry, "norm", "little") == [("here", "'little' needs the option 'factor'")]


@pytest.mark.parametrize(
    "option, value, message",
    [
        ("eps", "1e-5", "must be a valid number, but is '1e-5'"),
        ("bias", 1, "must be a valid boolean, but is 1"),
        ("groups", "2", "must be a valid integer or null, but is '2'"),
    ],
)
def test_a_wrong_type_is_refused_as_written(registry, option, value, message):
    spec = {"name": "everything", option: value}
    assert problems(registry, "norm", spec) == [(f"here.{option}", message)]
    with pytest.raises(RecipeError):
        registry.build("norm", spec, d_model=1, site="")


@pytest.mark.parametrize(
    "option, value, got",
    [
        ("pair", [1, 2], (1, 2)),
        ("names", ["a", "b", "a"], {"a", "b"}),
        ("rows", [["a"], ["b", "c"]], [["a"], ["b", "c"]]),
        ("rows", None, None),
        ("mode", "mean", "mean"),
        ("ranges", {"a": [1, 2]}, {"a": (1, 2)}),
        ("anything", ["1", {"x": None}], ["1", {"x": None}]),
    ],
)
def test_lists_stand_for_tuples_and_sets(registry, option, value, got):
    assert registry.build("task", {"name": "typed", option: value}).got[option] == got


@pytest.mark.parametrize(
    "option, value",
    [("pair", ["1", 2]), ("pair", [1, 2, 3]), ("rows", [["a", 1]]), ("mode", "max"), ("names", [1]), ("text", 3)],
)
def test_what_a_list_holds_is_taken_as_written_too(registry, option, value):
    ((path, message),) = problems(registry, "task", {"name": "typed", option: value})
    assert path == f"here.{option}"
    assert message.startswith("must be ")


def test_options_leaves_out_the_givens(registry):
    assert list(registry.options("norm", "everything")) == ["eps", "bias", "groups"]
    assert registry.options("norm", "everything")["eps"].default == 1e-6
    assert registry.options("norm", "little")["factor"].required


# ------------------------------------------------------------------------------------------------------------ nesting


def test_components_nest_single_and_in_lists_and_get_the_givens(registry):
    spec = {"name": "outer", "parts": ["inner", {"name": "inner", "base": 2}], "first": {"name": "inner", "base": 3}}
    built = registry.build("position", spec, d_model=8, head_dim=4)
    assert [part.got for part in built.parts] == [(8, 4, 10.0), (8, 4, 2.0)]
    assert built.first.got == (8, 4, 3.0)
    deep = {"name": "outer", "parts": [{"name": "outer", "parts": ["inner"]}]}
    assert registry.build("position", deep, d_model=8, head_dim=4).parts[0].parts[0].got == (8, 4, 10.0)


def test_problems_of_nested_components_have_their_path(registry):
    spec = {"name": "outer", "parts": ["inner", {"name": "inner", "bse": 2}], "first": "iner"}
    assert [path for path, _ in problems(registry, "position", spec, "model.position")] == [
        "model.position.parts[1].bse",
        "model.position.first",
    ]
    assert problems(registry, "position", {"name": "outer", "parts": "inner"}) == [
        ("here.parts", "must be a list of positions, but is 'inner'")
    ]


def test_the_constructor_s_refusal_is_reported_with_its_path(registry):
    with pytest.raises(RecipeError) as caught:
        registry.build("norm", {"name": "little", "factor": -1}, "model.norm")
    (problem,) = caught.value.problems
    assert (problem.path, problem.message) == (
        "model.norm",
        "'little' refuses: `factor` must be positive, but is -1.0",
    )
    nested = {"name": "outer", "parts": ["inner", {"name": "inner", "base": 13}]}
    with pytest.raises(RecipeError) as caught:
        registry.build("position", nested, "model.position", d_model=8, head_dim=4)
    assert [problem.path for problem in caught.value.problems] == ["model.position.parts[1]"]


# ------------------------------------------------------------------------------------------------------------ entries


@pytest.mark.parametrize(
    "name, reason",
    [
        ("absent", "ModuleNotFoundError"),
        ("no_attribute", "AttributeError"),
        ("no_class", "TypeError: it is no class"),
        ("no_colon", "AttributeError"),
    ],
)
def test_what_cannot_be_loaded_is_reported_with_its_plugin(registry, name, reason):
    with pytest.raises(UserError) as caught:
        registry.entry("norm", name).load()
    message = f"norm '{name}' of plugin 'mine' cannot be loaded from '{REGISTERED['norm'][name]}': {reason}"
    assert str(caught.value).startswith(message)
    assert problems(registry, "norm", name) == [("here", str(caught.value))]


def test_summaries_are_first_paragraphs(registry):
    assert registry.entry("norm", "everything").summary() == "All givens, and options of many types."
    assert registry.entry("norm", "lazy").summary().startswith("Division by the root mean square")
    assert registry.entry("norm", "absent").summary() == ""


def test_summaries_of_all_shipped_components_come_without_paddle():
    script = """
import sys
from paddle_tfm.plugins import create_plugins
from paddle_tfm.registry import Registry
entries = list(Registry(create_plugins()))
print(len(entries), sum(bool(entry.summary()) for entry in entries), "paddle" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    count, summarized, paddle = done.stdout.split()
    assert int(count) > 40
    assert (summarized, paddle) == (count, "False")


# --------------------------------------------------------------------------------- parameters of a superclass: **parent


class Wide(Everything):
    """A superclass' parameters by ``**parent``, one option of its own, one with another default, one that is fixed."""

    fixed_options = frozenset({"groups"})

    def __init__(self, *, slope: float, eps: float = 0.5, **parent):
        super().__init__(eps=eps, groups=3, **parent)
        self.slope = slope


class Wider(Wide):
    """Two levels."""

    def __init__(self, *, offset: int = 0, **parent):
        super().__init__(**parent)
        self.offset = offset


class Same(Wider):
    """No constructor of its own."""


class Narrow(Everything):
    """A keyword rest without the mark."""

    def __init__(self, d_model: int, **options):
        super().__init__(d_model, "there", **options)


class Top(Norm):
    """The mark, and no component's constructor above it."""

    def __init__(self, slope: float = 1.0, **parent):
        super().__init__(**parent)


@pytest.fixture(scope="module")
def heirs() -> Registry:
    plugin = types.ModuleType("heirs")
    classes = {"wide": Wide, "wider": Wider, "same": Same, "narrow": Narrow, "top": Top}
    plugin.register_norms = hookimpl(lambda: classes)
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(plugin, name="heirs")
    return Registry(Plugins(manager))


def test_a_marked_parent_adds_the_superclass_parameters_without_the_fixed_ones():
    assert list(parameters(Wide)) == ["slope", "eps", "d_model", "site", "bias"]
    assert parameters(Wide)["eps"].default == 0.5 and parameters(Wide)["slope"].required
    assert parameters(Wide)["bias"] == parameters(Everything)["bias"]
    assert list(parameters(Wider)) == list(parameters(Same)) == ["offset", *parameters(Wide)]
    assert list(parameters(Narrow)) == ["d_model"]
    assert list(parameters(Top)) == ["slope"]


def test_a_recipe_sets_the_options_of_class_and_superclass(heirs):
    spec = {"name": "same", "offset": 4, "slope": 2, "bias": False}
    built = heirs.build("norm", spec, d_model=8, site="there", max_length=9)
    assert (built.offset, built.slope) == (4, 2.0)
    assert built.got == {"d_model": 8, "site": "there", "eps": 0.5, "bias": False, "groups": 3}
    assert problems(heirs, "norm", "wider") == [("here", "'wider' needs the option 'slope'")]
    with pytest.raises(RecipeError, match="'wider' needs 'site', which is not given here"):
        heirs.build("norm", {"name": "wider", "slope": 1}, d_model=8)


def test_a_misspelt_option_of_a_superclass_is_refused(heirs):
    assert problems(heirs, "norm", {"name": "wider", "slope": 1, "baias": False}) == [
        ("here.baias", "'wider' has no option 'baias'; did you mean 'bias'? Its options: bias, eps, offset, slope")
    ]
    assert problems(heirs, "norm", {"name": "wider", "slope": 1, "groups": 2})[0][0] == "here.groups"
    assert problems(heirs, "norm", {"name": "top", "dtype": "float64"})[0][0] == "here.dtype"
    for wrong in ({"baias": False}, {"groups": 2}):
        with pytest.raises(TypeError, match=next(iter(wrong))):
            Wider(slope=1.0, d_model=8, site="there", **wrong)
