"""PyYAML's safe loader, with the numbers of YAML 1.2 and without tags that make something else of a value."""

from __future__ import annotations

import re

import yaml

from paddle_tfm.recipe import limits

TEXT = "tag:yaml.org,2002:str"


class Loader(yaml.SafeLoader):
    """SafeLoader with YAML 1.2's numbers and booleans: 1e-5 is a number; `no`, `on`, 12:30 and 2024-01-01 are words.
    Keys are words as written. What is nested too deeply is not read to its end."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > limits.DEPTH:
            sentence = f"nested more than {limits.DEPTH} deep"
            raise yaml.composer.ComposerError(None, None, sentence, self.peek_event().start_mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        if node is not None:
            self._require_plain(node)
        return node

    def _require_plain(self, node: yaml.Node) -> None:
        """Refuse a tag that makes of a value what it is not by itself (`!!str 3` may stand)."""
        value = node.value if isinstance(node, yaml.ScalarNode) else None
        if node.tag != self.resolve(type(node), value, (True, False)) and (node.tag != TEXT or value is None):
            sentence = f"the tag {node.tag} is not understood here; leave it out"
            raise yaml.composer.ComposerError(None, None, sentence, node.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        self.flatten_mapping(node)
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a word", key.start_mark)
        return {key.value: self.construct_object(item, deep) for key, item in node.value}


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
