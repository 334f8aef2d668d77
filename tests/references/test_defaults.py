"""Every default and every starting value is the one that `defaults.py` holds, with its source: a change to a component
that nothing else would notice is noticed here, and has to be made in both places."""

import re

import numpy as np
import paddle
import pytest
from defaults import D_MODEL, DEFAULTS, HEADS, IDENTITY, Normal, Uniform

from paddle_tfm.hookspecs import KINDS
from paddle_tfm.layers import Embedding
from paddle_tfm.protocols import LayerSite

SITE = LayerSite("decoder", "self", 0, 2, 3)
GIVENS = {
    "d_model": D_MODEL, "num_heads": HEADS, "head_dim": D_MODEL // HEADS, "d_ff": 24, "dropout": 0.0, "site": SITE,
    "max_length": 32, "vocab_size": 40, "pad_id": 0, "sites": [SITE] * 3,
}  # fmt: skip
PARTS = {  # what cannot be left out
    ("position", "chain"): {"parts": ["none"]},
    ("position", "randomized"): {"encoding": "none"},
    ("feed_forward", "canon"): {"inner": "relu"},
}
BUILT = {"attention", "norm", "placement", "position", "feed_forward", "head"}  # kinds whose components hold numbers
DRAWS = 40  # components, over which the distribution of a starting value is looked at
A_SOURCE = re.compile(r"\d{4}\.\d{4,5}|[\w-]+/[\w-]+|\b(19|20)\d\d\b|\bours\b|\bas \w+|adam's|PyTorch's|sacreBLEU's")


def shipped(registry, kind):
    """The names of a kind that come with the project, but for those that are wrong on purpose."""
    ours = [entry for entry in registry if entry.kind == kind and entry.provider.source == "paddle-tfm"]
    return [entry.name for entry in ours if not entry.wrong_on_purpose]


def defaults(registry, kind, name):
    """Option → default, of those that have one."""
    return {key: option.default for key, option in registry.options(kind, name).items() if not option.required}


def starts(registry, kind, name):
    """Parameter or buffer → its values in each of `DRAWS` components, numbered ones together [DRAWS, n, …]; without
    matrices that the recipe's initializer draws, and without biases of zero."""
    if kind not in BUILT:
        return {}
    collected, filled = {}, (GIVENS.keys() | {"embedding", "norm"}) & registry.entry(kind, name).load().givens
    for _ in range(DRAWS):
        givens = GIVENS | {
            "embedding": Embedding(40, D_MODEL, 0, 1),
            "norm": lambda site, width: registry.build("norm", "none"),
        }
        component = registry.build(
            kind, {"name": name, **PARTS.get((kind, name), {})}, **{key: givens[key] for key in filled}
        )
        trained = dict(component.named_parameters())
        for key, value in component.state_dict().items():
            drawn = key in trained and value.ndim > 1 and not getattr(trained[key], "keep_initial", False)
            if drawn or (key.endswith("bias") and not value.numpy().any()):
                continue
            collected.setdefault(re.sub(r"\.\d+\b", ".*", key), []).append(value.numpy())
    return {key: np.reshape(values, [DRAWS, -1, *values[0].shape]) for key, values in collected.items()}


def is_start(values, start):
    """Whether what all components start from is `start`."""
    if isinstance(start, Normal):
        few = 4.0 * start.deviation / values.size**0.5
        return abs(values.mean()) < few and abs(values.std() - start.deviation) < few
    if isinstance(start, Uniform):
        reached, width = start.of(values), start.high - start.low
        inside = start.low - 1e-5 <= reached.min() and reached.max() <= start.high + 1e-5
        return inside and reached.min() < start.low + 0.1 * width and reached.max() > start.high - 0.1 * width
    if isinstance(start, str) and start == IDENTITY:
        start = np.eye(values.shape[-1])
    return bool(np.allclose(values, start, rtol=1e-6, atol=0.0))


def as_written(values):
    """A starting value as an entry says it, where it is a number."""
    return f"{values.flat[0]:.6g}" if np.ptp(values) == 0 else "…"


def entry(kind, name, found_options, found_starts):
    """An entry as it would stand in `defaults.py`, but for its source."""
    lines = [
        f'    "{name}": held(',
        '        "arXiv number and section, or the authors\' file; where ours differ, why",',
    ]
    if found_starts:
        inside = ", ".join(f'"{key}": {as_written(values)}' for key, values in found_starts.items())
        lines.append(f"        starts={{{inside}}},")
    lines += [f"        {key}={value!r}," for key, value in found_options.items()]
    return "\n".join([*lines, "    ),"])


def differences(registry, kind, name):
    """Sentences for what a component has and its entry has not, or the reverse."""
    found_options, found_starts = defaults(registry, kind, name), starts(registry, kind, name)
    if name not in DEFAULTS[kind]:
        written = entry(kind, name, found_options, found_starts)
        yield f"`{kind.upper()}` of tests/references/defaults.py has no entry for '{name}'. Look its numbers up, and write\n\n{written}"
        return
    held = DEFAULTS[kind][name]
    if not A_SOURCE.search(held.source):
        yield f"{kind} '{name}': its source names no paper, no repository and no year, nor says 'ours': {held.source!r}"
    for key in sorted({*found_options, *held.options}):
        ours, theirs = (options.get(key, "no default") for options in (found_options, held.options))
        if (type(ours), ours) != (type(theirs), theirs):
            yield f"{kind} '{name}': {key} is {ours!r}, held is {theirs!r} ({held.source})"
    for key in sorted({*found_starts, *held.starts}):
        ours, theirs = found_starts.get(key), held.starts.get(key)
        if ours is None or theirs is None or not is_start(ours, theirs):
            here = "nowhere" if ours is None else as_written(ours)
            yield f"{kind} '{name}': '{key}' starts at {here}, held is {theirs} ({held.source})"


@pytest.mark.parametrize("kind", sorted(DEFAULTS))
def test_defaults_and_starting_values_are_those_of_the_table(registry, kind):
    paddle.seed(1)
    names = shipped(registry, kind)
    problems = [problem for name in names for problem in differences(registry, kind, name)]
    problems += [f"{kind} '{name}' has an entry, and is not shipped" for name in DEFAULTS[kind] if name not in names]
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def test_the_other_kinds_have_no_options_to_hold(registry):
    ours_alone = {"task", "dataset", "tokenizer", "metric", "executor"}
    assert set(KINDS) - set(DEFAULTS) == {"section", "kernel"} | ours_alone
    assert [name for name in shipped(registry, "section") if registry.options("section", name)] == []
