"""Folders of CTranslate2, and `.argosmodel`, a zip that holds one.

The binary format and the names of variables are those of CTranslate2 4.8 (specs/model_spec.py, src/layers).
"""

from __future__ import annotations

import json
import math
import re
import struct
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from paddle_tfm import memory
from paddle_tfm.errors import UserError
from paddle_tfm.files import content, read_json
from paddle_tfm.imports.foreign import IMPOSSIBLE, Foreign, Side, Weights, sentencepiece_of
from paddle_tfm.language import _

VERSION = 6  # of the binary format
LARGEST = 1 << 36  # bytes of a model
TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16, np.uint16)  # the last holds bfloat16
BFLOAT16 = 5
ACTIVATIONS = {0: "relu", 2: "swish", 3: "gelu", 4: {"name": "swish", "beta": 1.702}}
GATED = {0: "reglu", 2: "swiglu", 3: "geglu"}
NUMBERS = {  # variables that are no matrices: whether any value will do; what else asks for something is refused
    "alignment_layer": True,
    "alignment_heads": True,
    "embeddings_merge": True,
    "num_heads": True,
    "pre_norm": True,
    "activation": True,
    "scale_embeddings": True,
    "start_from_zero_embedding": True,
    "multi_query_attention": False,
    "alibi": False,
    "alibi_use_positive_positions": False,
    "scale_alibi": False,
}


def read_ctranslate2(folder: Path) -> Foreign:
    """The model of a folder with `model.bin`.

    Raises:
        UserError: a file is missing or damaged, or the model computes what nothing here does.
    """
    file = folder / "model.bin"
    arrays, remarks = _arrays(file)
    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    return _Reader(folder, Weights(file, arrays), config, remarks).model()


def read_argos(path: Path) -> Foreign:
    """The model of an `.argosmodel`."""
    try:
        with zipfile.ZipFile(path) as package, tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            members = {Path(member.filename).name: member for member in package.infolist() if not member.is_dir()}
            if "sentencepiece.model" not in members:
                text = "{path}: it has no sentencepiece.model (there is {files})"
                raise UserError(text.format(path=path, files=", ".join(sorted(members)[:10])))
            wanted = {name: members[name] for name in members if re.fullmatch(r"[\w.-]+\.(bin|json|txt|model)", name)}
            memory.require(sum(member.file_size for member in wanted.values()), str(path))
            for name, member in wanted.items():
                (folder / name).write_bytes(package.read(member))
            foreign = read_ctranslate2(folder)
    except FileNotFoundError as error:
        raise UserError(_("{path}: no such file").format(path=path)) from error
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        raise UserError(f"{path}: no .argosmodel that can be read: {error}") from error
    foreign.origin["model"] = str(path)
    return foreign


# -------------------------------------------------------------------------------------------------------------- binary


class _Bytes:
    """The bytes of a file, read from the first on."""

    def __init__(self, file: Path):
        try:
            self.data = memoryview(content(file, LARGEST))
        except FileNotFoundError as error:
            raise UserError(_("{path}: no such file").format(path=file)) from error
        self.file, self.at = file, 0

    def take(self, number: int) -> memoryview:
        """The next bytes. Raises UserError: there are not so many."""
        if self.at + number > len(self.data):
            raise UserError(f"{self.file}: damaged: it ends too early")
        self.at += number
        return self.data[self.at - number : self.at]

    def number(self, form: str) -> int:
        """The next whole number, as `struct` calls its form."""
        return int(struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))[0])

    def text(self) -> str:
        """The next text."""
        return bytes(self.take(self.number("H"))).rstrip(b"\0").decode("utf-8", "replace")


def _arrays(file: Path) -> tuple[dict[str, np.ndarray], list[str]]:
    """The variables of `model.bin`, those of fewer bits as float32; and what is to be said of these."""
    data = _Bytes(file)
    if (version := data.number("I")) != VERSION:
        sentence = f"{file}: the binary format must be version {VERSION}, but is {version}; convert the model again"
        raise UserError(sentence)
    if (spec := data.text()) != "TransformerSpec":
        raise UserError(f"{file}: it must hold a TransformerSpec, but holds '{spec}'")
    data.number("I")  # the specification's revision
    stored: dict[str, np.ndarray] = {}
    for _variable in range(data.number("I")):
        name, rank = data.text(), data.number("B")
        shape = [data.number("I") for _dimension in range(rank)]
        kind, size = data.number("B"), data.number("I")
        if kind >= len(TYPES) or math.prod(shape) * np.dtype(TYPES[kind]).itemsize != size:
            raise UserError(f"{file}: damaged: {name} is not of its size")
        array = np.frombuffer(data.take(size), TYPES[kind]).reshape(shape)
        stored[name] = (array.astype(np.uint32) << 16).view(np.float32) if kind == BFLOAT16 else array
    scales = [name for name in stored if name.endswith("weight_scale")]
    kinds = {stored[name.removesuffix("_scale")].dtype.name for name in scales if name.removesuffix("_scale") in stored}
    for name in scales:
        scale, weight = stored.pop(name), name.removesuffix("_scale")
        if weight in stored:
            stored[weight] = stored[weight].astype(np.float32) / (scale[:, None] if scale.ndim else scale)
    for _alias in range(data.number("I")):  # of whole matrices, whatever their numbers are
        alias, name = data.text(), data.text()
        if name in stored:
            stored[alias] = stored[name]
        elif not name.endswith("weight_scale"):
            raise UserError(f"{file}: damaged: there is no {name}")
    stored = {name: array.astype(np.float32) if array.dtype.kind == "f" else array for name, array in stored.items()}
    text = _("its matrices are of {kind}, and are float32 from now on: what their rounding has lost stays lost")
    return stored, [text.format(kind=kind) for kind in sorted(kinds)]


# --------------------------------------------------------------------------------------------------------------- model


class _Reader:
    """The model of a folder's variables."""

    def __init__(self, folder: Path, weights: Weights, config: Mapping[str, Any], remarks: list[str]):
        self.folder, self.weights, self.config, self.remarks = folder, weights, config, remarks
        self.ours: dict[str, np.ndarray] = {}
        self.numbers = {name: array for name, array in weights.arrays.items() if array.ndim == 0}
        for name, value in self.numbers.items():
            kind = name.rpartition("/")[2]
            if kind in ("queries_scale", "head_dim", "num_heads_kv") or NUMBERS.get(kind) or not value:
                weights.left.discard(name)
            else:
                sentence = f"{weights.file}: it asks for `{name}: {value}`, which nothing here computes"
                raise UserError(sentence)

    def model(self) -> Foreign:
        """The whole model."""
        config, weights = self.config, self.weights
        if config.get("add_source_bos"):
            raise UserError(f"{self.folder}: it asks for `add_source_bos`, which nothing here computes")
        tables = {
            side: self._matrix(scope).T
            for side, scope in (("encoder", "encoder/embeddings_0"), ("decoder", "decoder/embeddings"))
        }
        sides = {
            name: self._side(name, len(tables[side])) for name, side in (("source", "encoder"), ("target", "decoder"))
        }
        width = tables["encoder"].shape[1]
        shared = sides["source"].pieces == sides["target"].pieces
        shares = shared and np.array_equal(*tables.values())
        self.norms: set[str] = set()
        stacks = {side: self._stack(side, width) for side in tables}
        for side, name in (("encoder", "source"), ("decoder", "target")):
            if side == "encoder" and shares:
                continue
            rows = sides[name].rows(tables[side])
            if side == "decoder" and not self._number("decoder/start_from_zero_embedding"):
                start = str(config.get("decoder_start_token", config.get("bos_token", "<s>")))
                if start not in sides[name].pieces:
                    raise UserError(f"{self.folder}: there is no piece {start}")
                rows[1] = tables[side][sides[name].pieces.index(start)]
            self.ours[f"{name}_embedding.weight"] = rows
        head = self._head(sides["target"], tables["decoder"])
        weights.require_all_taken()
        if len(self.norms) > 1:
            raise UserError(f"{weights.file}: it has layer norms and RMS norms, which nothing here computes")
        norm = next(iter(self.norms), "layer")
        eps = config.get("layer_norm_epsilon") or {"layer": 1e-5, "rms": 1e-6}[norm]
        encoder, decoder = stacks["encoder"], stacks["decoder"]
        model = {
            "d_model": width,
            "num_heads": encoder["heads"],
            "d_ff": encoder["inner"],
            "encoder_layers": encoder["depth"],
            "decoder_layers": decoder["depth"],
            "max_length": min(encoder["longest"], decoder["longest"]),
            "scale_embedding": encoder["scaled"],
            "share_embeddings": shares,
            "source_end": bool(config.get("add_source_eos", False)),
            "attention": "multihead",
            "norm": {"name": norm, "eps": float(eps)},
            "head": head,
        }
        for part in ("placement", "position", "feed_forward"):
            same = encoder[part] == decoder[part]
            model[part] = encoder[part] if same else {"encoder": encoder[part], "decoder": decoder[part]}
        for part in ("heads", "inner", "scaled"):
            if encoder[part] != decoder[part]:
                raise UserError(f"{weights.file}: its stacks differ in {part}, which nothing here has")
        search = {"name": "beam", "size": 5, "alpha": 1.0, "penalty": "power"}
        recipe = {"model": model, "search": search, "evaluate": {"search": "greedy"}}
        origin = {"toolkit": "CTranslate2", "version": "", "model": str(weights.file)}
        return Foreign(origin, recipe, self.ours, sides, shared, self.remarks)

    def _number(self, name: str, default: float = 0.0) -> float:
        return float(self.numbers.get(name, default))

    def _matrix(self, scope: str) -> np.ndarray:
        """The weight of a layer as [in, out], which CTranslate2 has as [out, in]."""
        name = f"{scope}/weight"
        shape = self.weights.arrays[name].shape if name in self.weights else (0, 0)
        return self.weights.take(name, *shape).T

    def _linear(self, scope: str) -> tuple[np.ndarray, np.ndarray]:
        """Weight [in, out] and bias [out] of a layer; zeros where it has none."""
        weight, name = self._matrix(scope), f"{scope}/bias"
        return weight, self.weights.take(name, weight.shape[1]) if name in self.weights else np.zeros(
            weight.shape[1], np.float32
        )

    def _norm(self, ours: str, scope: str, width: int) -> bool:
        """Take a norm, if it is there."""
        if f"{scope}/gamma" not in self.weights:
            return False
        self.ours[f"{ours}.weight"] = self.weights.take(f"{scope}/gamma", width)
        is_layer = f"{scope}/beta" in self.weights
        self.norms.add("layer" if is_layer else "rms")
        if is_layer:
            self.ours[f"{ours}.bias"] = self.weights.take(f"{scope}/beta", width)
        return True

    def _stack(self, side: str, width: int) -> dict[str, Any]:
        """The layers of a stack; what the recipe says of it."""
        file, is_pre = self.weights.file, bool(self._number(f"{side}/pre_norm", 1.0))
        layers = {int(match[1]) for name in self.weights.arrays if (match := re.match(rf"{side}/layer_(\d+)/", name))}
        if layers != set(range(len(layers))) or not layers:
            raise UserError(f"{file}: damaged: the {side} lacks a layer")
        heads, scale = int(self._number(f"{side}/num_heads", 8)), self._number(f"{side}/scale_embeddings", 1.0)
        if heads < 1 or width % heads:
            raise UserError(f"{file}: {heads} heads must divide the width {width}")
        is_flag = self.numbers.get(f"{side}/scale_embeddings", np.int8(1)).dtype == np.int8
        scaled = bool(scale) if is_flag else not math.isclose(scale, 1.0)
        if scaled and not is_flag and not math.isclose(scale, math.sqrt(width), rel_tol=1e-5):
            raise UserError(f"{file}: it multiplies embeddings by {scale}, which nothing here does")
        last = f"{side}.layers.{len(layers) - 1}.placement"
        names = (
            ["self_attention", "cross_attention", "feed_forward"]
            if side == "decoder"
            else ["self_attention", "feed_forward"]
        )
        embedding = self._norm(f"{side}.layers.0.placement.embedding_norm", f"{side}/layernorm_embedding", width)
        is_plain = is_pre and not embedding and f"{side}/layer_norm/gamma" in self.weights
        top = self._norm(f"{side}.final_norm" if is_plain else f"{last}.top_norm", f"{side}/layer_norm", width)
        norms = "norms" if is_plain or not is_pre else "before_norms"
        for i in range(len(layers)):
            for place, ours in enumerate(names):
                theirs = {"cross_attention": "attention", "feed_forward": "ffn"}.get(ours, ours)
                scope, own = f"{side}/layer_{i}/{theirs}", f"{side}.layers.{i}"
                if not self._norm(f"{own}.placement.{norms}.{place}", f"{scope}/layer_norm", width):
                    raise UserError(
                        _("{file}: there is no matrix {name}, which the model needs").format(
                            file=file, name=f"{scope}/layer_norm/gamma"
                        )
                    )
                if ours == "feed_forward":
                    feed_forward, inner = self._feed_forward(f"{own}.{ours}", scope, side)
                else:
                    self._attention(f"{own}.{ours}", scope, width, heads)
        steps: Any = {"name": "steps", "embedding": "n" if embedding else "", "top": "n" if top else ""}
        steps |= {"before": "n", "after": "da"} if is_pre else {"before": "", "after": "dan"}
        placement = "pre" if is_plain else "post" if not (is_pre or embedding or top) else steps
        position, longest = self._position(side, width)
        return {
            "heads": heads,
            "inner": inner,
            "depth": len(layers),
            "scaled": scaled,
            "placement": placement,
            "position": position,
            "longest": longest,
            "feed_forward": feed_forward,
        }

    def _attention(self, ours: str, scope: str, width: int, heads: int) -> None:
        parts = ("query", "key", "value") if f"{scope}/linear_2/weight" not in self.weights else ("query",)
        groups = [parts, ("output",)] if len(parts) == 3 else [parts, ("key", "value"), ("output",)]
        of_head = int(self._number(f"{scope}/head_dim", width // heads)) or width // heads
        if of_head * heads != width or int(self._number(f"{scope}/num_heads_kv", heads)) not in (0, heads):
            sentence = f"{self.weights.file}: {scope} has heads of another number or width, which are not read"
            raise UserError(sentence)
        scale = self._number(f"{scope}/queries_scale", of_head**-0.5) * math.sqrt(of_head)
        for number, group in enumerate(groups):
            weight, bias = self._linear(f"{scope}/linear_{number}")
            if weight.shape != (width, width * len(group)):
                text = "{file}: {name} must have the shape {wanted}, but has {shape}"
                wanted = [width * len(group), width]
                named = f"{scope}/linear_{number}/weight"
                raise UserError(text.format(file=self.weights.file, name=named, wanted=wanted, shape=[*weight.T.shape]))
            for part, of_part, own_bias in zip(group, np.split(weight, len(group), 1), np.split(bias, len(group))):
                factor = np.float32(scale if part == "query" else 1.0)
                self.ours[f"{ours}.{part}.weight"] = np.ascontiguousarray(of_part * factor)
                self.ours[f"{ours}.{part}.bias"] = own_bias * factor

    def _feed_forward(self, ours: str, scope: str, side: str) -> tuple[Any, int]:
        code, is_gated = int(self._number(f"{side}/activation")), f"{scope}/linear_0_noact/weight" in self.weights
        known: Mapping[int, Any] = GATED if is_gated else ACTIVATIONS
        if code not in known:
            sentence = (
                f"{self.weights.file}: its activation, number {code} of CTranslate2, is none that is computed here"
            )
            raise UserError(sentence)
        inner = {"linear_0": "gate", "linear_0_noact": "up"} if is_gated else {"linear_0": "inner"}
        for theirs, part in {**inner, "linear_1": "output"}.items():
            weight, bias = self._linear(f"{scope}/{theirs}")
            self.ours |= {f"{ours}.{part}.weight": np.ascontiguousarray(weight), f"{ours}.{part}.bias": bias}
        return known[code], self.ours[f"{ours}.output.weight"].shape[0]

    def _position(self, side: str, width: int) -> tuple[Any, int]:
        """The encoding whose vectors are those of the table, and for how many positions they are known."""
        name = f"{side}/position_encodings/encodings"
        if name not in self.weights:
            sentence = f"{self.weights.file}: there is no {name}: its positions are none that are read"
            raise UserError(sentence)
        table = self.weights.take(name, *self.weights.arrays[name].shape)
        if table.ndim != 2 or table.shape[1] != width:
            raise UserError(f"{self.weights.file}: {name} must be as wide as the model")
        if not table.any():
            return "none", len(table)
        positions, channel = np.arange(len(table))[:, None], np.arange(width)
        angles = positions * 10000.0 ** (-(channel // 2 * 2) / width) + channel % 2 * (math.pi / 2)
        if np.abs(table - np.sin(angles)).max() < 1e-4:
            return "sinusoidal", len(table)
        if width % 2 == 0 and width >= 4:
            half = width // 2
            angles = positions * 10000.0 ** -(channel % half / (half - 1)) + channel // half * (math.pi / 2)
            if np.abs(table - np.sin(angles)).max() < 1e-4:
                return {"name": "sinusoidal", "halves": True}, len(table)
        self.ours[f"{side}.encodings.0.weight"] = table
        return "learned", len(table)

    def _head(self, side: Side, table: np.ndarray) -> dict[str, Any]:
        matrix, bias = self._linear("decoder/projection")
        is_tied = matrix.T.shape == table.shape and np.array_equal(matrix.T, table)
        if not is_tied:
            self.ours["head.output.weight"] = np.ascontiguousarray(side.rows(matrix.T).T)
        self.ours["head.bias" if is_tied else "head.output.bias"] = side.rows(bias, IMPOSSIBLE)
        return {"name": "tied" if is_tied else "linear", "bias": True}

    def _side(self, name: str, rows: int) -> Side:
        pieces = self._pieces(name)[:rows]
        pieces += [f"<{i}>" for i in range(len(pieces), rows)]
        config = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", **self.config}
        places = {
            key: pieces.index(config[key]) if config[key] in pieces else None
            for key in ("bos_token", "eos_token", "unk_token")
        }
        end, unknown, begin = places["eos_token"], places["unk_token"], places["bos_token"]
        if end is None or unknown is None:
            raise UserError(
                "{folder}: the vocabulary has no {name}".format(
                    folder=self.folder, name=config["eos_token" if end is None else "unk_token"]
                )
            )
        padding = next((pieces.index(piece) for piece in ("<pad>", "<blank>") if piece in pieces), None)
        begin = None if begin in (end, unknown) else begin
        return Side(pieces, end, unknown, self._sentencepiece(name), padding, begin)

    def _pieces(self, name: str) -> list[str]:
        for file in (
            f"{name}_vocabulary.json",
            "shared_vocabulary.json",
            f"{name}_vocabulary.txt",
            "shared_vocabulary.txt",
        ):
            path = self.folder / file
            if not path.is_file():
                continue
            text = content(path).decode("utf-8", "replace")
            try:
                pieces = json.loads(text) if path.suffix == ".json" else text.rstrip("\n").split("\n")
            except ValueError as error:
                raise UserError(f"{path}: damaged: {error}") from error
            if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
                raise UserError(f"{path}: must hold a list of pieces")
            return pieces
        raise UserError(f"{self.folder}: there is no {name}_vocabulary.json and no shared_vocabulary.json")

    def _sentencepiece(self, name: str) -> bytes | None:
        files = (f"{name}/sentencepiece.model", f"{name}.spm", "sentencepiece.model", f"{name}.model")
        for file in map(self.folder.joinpath, files):
            if file.is_file():
                sentencepiece_of(file)
                return content(file)
        remark = _("there is no SentencePiece model: texts must come cut into pieces, with spaces between them")
        if remark not in self.remarks:
            self.remarks.append(remark)
        return None
