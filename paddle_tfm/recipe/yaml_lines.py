"""Safe YAML that remembers lines: data plus, for each dotted path, the file and line that set it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import yaml

from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.recipe import limits

Origins = dict[str, tuple[str, int]]  # dotted path → (file, line); "" → the recipe itself, beside its bases
FULL_WIDTH = re.compile("[：，【】［］｛｝“”]")
COMMAND_LINE = "command line"  # the file of what an override set, whose line is 0


class Loader(yaml.SafeLoader):
    """SafeLoader with YAML 1.2's numbers and booleans: 1e-5 is a number; `no`, `on`, 12:30 and 2024-01-01 are words.
    Keys are words as written."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        self.flatten_mapping(node)
        return {key.value: self.construct_object(item, deep) for key, item in node.value}


PLAIN = ("None", "null", "bool", "int", "float", "str", "seq", "map")
Loader.yaml_constructors = {
    tag: make for tag, make in yaml.SafeLoader.yaml_constructors.items() if str(tag).rpartition(":")[2] in PLAIN
}
_REPLACED = {f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "timestamp")}
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag not in _REPLACED]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^(?:[-+]?(?:0|[1-9][\d_]*)|0x[\da-fA-F]+|0o[0-7]+)$"), list("-+0123456789")
)
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(?:(?:\d[\d_]*)?\.\d+(?:[eE][-+]?\d+)?|\d[\d_]*\.(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\.(?:inf|Inf)|\.(?:nan|NaN))$"
    ),
    list("-+0123456789."),
)


def join(path: str, key: object) -> str:
    """The dotted path of `key` below `path`."""
    return f"{path}.{key}" if path else str(key)


def load(text: str, name: str) -> tuple[dict, Origins]:
    """The mapping that `text` holds, and where each of its paths was set.

    Raises:
        UserError: it is not YAML, not a mapping, or has a key twice; with file and line.
    """
    data, origins = _read(text, name)
    data = {} if data is None else data
    if not isinstance(data, dict):
        sentence = _("{name}: a recipe is a mapping (`key: value` lines), but this is a {kind}")
        raise UserError(sentence.format(name=name, kind=type(data).__name__))
    return data, origins


def _read(text: str, name: str) -> tuple[object, Origins]:
    try:
        loader = Loader(text)
        lines = _Lines(name)
        node = loader.get_single_node()
        if node is None:
            return None, lines.origins
        lines.walk(node, "", 0)
        return loader.construct_document(node), lines.origins
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        mark = FULL_WIDTH.search("\n".join(text.split("\n")[max(line - 2, 0) : line]))  # noticed only in the line after
        hint = _("; `{mark}`, here or in the line before, is full-width, but YAML's marks are half-width")
        sentence = _("{name} line {line}: not valid YAML: {why}{hint}")
        hint = hint.format(mark=mark[0]) if mark else ""
        why = _reason(error.problem or str(error))
        raise UserError(sentence.format(name=name, line=line, why=why, hint=hint)) from error
    except RecursionError as error:
        sentence = _("{name} line {line}: nested more than {depth} deep")
        raise UserError(sentence.format(name=name, line=loader.line + 1, depth=limits.DEPTH)) from error
    except (yaml.YAMLError, ValueError, LookupError, OverflowError) as error:  # `!!bool x`, `"\UFFFFFFFF"`
        raise UserError(_("{name}: not valid YAML: {error}").format(name=name, error=error)) from error


def _reason(problem: str) -> str:
    """What PyYAML says, in the reader's language: in the catalogue "…" stands for what it quotes of the file."""
    quote = re.search(r"(?:found|got|alias|character|tag) (['\"].*['\"])(?: that|$)", problem)
    return _(problem.replace(quote[1], "…")).replace("…", quote[1]) if quote else _(problem)


class _Lines:
    """Where each path was set, before anything is made of the nodes; what is too large or too deep is refused. An alias
    is walked through wherever it stands."""

    def __init__(self, name: str):
        self.name, self.values = name, 0
        self.origins: Origins = {}

    def walk(self, node: yaml.Node, path: str, depth: int) -> None:
        line = node.start_mark.line + 1
        self.values += 1  # two paths may be written alike, {a.b: …, a: {b: …}}
        if self.values > limits.VALUES:
            sentence = _("has more than {most:,} values, an alias counted as what it stands for").format(
                most=limits.VALUES
            )
            raise UserError(_("{name}: not a recipe: {sentence}").format(name=self.name, sentence=sentence))
        if max(depth, path.count(".")) > limits.DEPTH:  # dots divide a path as mappings do
            text = _("{name} line {line}: nested more than {depth} deep")
            raise UserError(text.format(name=self.name, line=line, depth=limits.DEPTH))
        self.origins[path] = (self.name, line)
        if isinstance(node, yaml.SequenceNode):
            for i, item in enumerate(node.value):
                self.walk(item, f"{path}[{i}]", depth + 1)
        if isinstance(node, yaml.MappingNode):
            self._walk_mapping(node, path, depth)

    def _walk_mapping(self, node: yaml.MappingNode, path: str, depth: int) -> None:
        keys = set()
        for key, item in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                text = _("{name} line {line}: not valid YAML: a key must be a word")
                raise UserError(text.format(name=self.name, line=line))
            if key.value in keys:
                text = _("{name} line {line}: '{key}' is set twice; keep one")
                raise UserError(text.format(name=self.name, line=line, key=join(path, key.value)))
            keys.add(key.value)
            self.walk(item, join(path, key.value), depth + 1)
            self.origins[join(path, key.value)] = (self.name, line)


def load_file(path: Path, name: str | None = None) -> tuple[dict, Origins]:
    """`load` of a file; a missing or undecodable one is a UserError."""
    name = name or str(path)
    return load(read_text(path, name), name)


def read_text(path: Path, name: str) -> str:
    """The text of a recipe's file.

    Raises:
        UserError: it cannot be read, is not UTF-8, or is larger than a recipe may be.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > limits.BYTES:
                sentence = _("has {size:,} bytes, but a recipe has at most {most:,}; is it a recipe?").format(
                    size=size, most=limits.BYTES
                )
                raise UserError(f"{name}: {sentence}")
            return file.read().decode("utf-8")
    except OSError as error:
        raise UserError(_("{name}: cannot be read: {strerror}").format(name=name, strerror=error.strerror)) from error
    except UnicodeDecodeError as error:
        text = _("{name}: not UTF-8 text (byte {byte}); a recipe is YAML, saved as UTF-8")
        raise UserError(text.format(name=name, byte=error.start)) from error


def recipe_text(value: object) -> str:
    """A plain value as one writes it in a recipe, on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(recipe_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {recipe_text(item)}' for key, item in value.items())}}}"
    quoted = isinstance(value, str) and value[:1] in ("", "{", "[")  # bare, YAML reads something else
    return json.dumps(value, ensure_ascii=False) if quoted else str(value)


def value(text: str) -> object:
    """The value of an override such as ``1e-4``, ``[1, 2]`` or ``{name: rotary, base: 500}``."""
    return _read(text, f"'{text}'")[0]


def values(text: str) -> list[object]:
    """Those of an override that commas divide, ``layer,{name: rms, eps: 1e-3}``, by YAML's rules of a list."""
    try:
        items = _read(f"[{text}]", text)[0] if "," in text else []
    except UserError:  # of the text as it is, if it is no value either
        items = []
    return items if isinstance(items, list) and len(items) > 1 else [value(text)]


class _Dumper(yaml.SafeDumper):
    """Block style outside, flow style for small leaves: how people write recipes. Words that YAML 1.1 or 1.2 takes for
    something else are quoted."""

    yaml_implicit_resolvers = {
        first: [*yaml.SafeDumper.yaml_implicit_resolvers.get(first, []), *rules]
        for first, rules in Loader.yaml_implicit_resolvers.items()
    }


def _represent(dumper: _Dumper, mapping: dict) -> yaml.Node:
    small = all(not isinstance(item, (dict, list)) for item in mapping.values()) and len(str(mapping)) < 90
    return dumper.represent_mapping("tag:yaml.org,2002:map", mapping, flow_style=small and len(mapping) < 6)


def _represent_list(dumper: _Dumper, items: list) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=len(str(items)) < 90)


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if len(text.splitlines()) > 1 else None)


_Dumper.add_representer(dict, _represent)
_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(list, _represent_list)


def dump(data: dict) -> str:
    """YAML text of `data` in its own order, Chinese as written."""
    blocks = [
        yaml.dump({key: item}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False)
        for key, item in data.items()
    ]
    lines = []
    for block in blocks:
        # A document of one small mapping is dumped in flow style as a whole: unwrap it.
        text = block.strip()
        lines.append(text[1:-1] if text.startswith("{") and text.endswith("}") else text)
    return "\n".join(lines) + "\n"
