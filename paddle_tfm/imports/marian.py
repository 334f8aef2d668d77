"""Marian's models: `.npz` with its options inside, `decoder.yml`, vocabularies and SentencePiece models.

Names and formulas are those of Marian's src/models/transformer.h, read in 1.12.42 (arXiv:1804.00344).
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from paddle_tfm import memory
from paddle_tfm.errors import UserError
from paddle_tfm.files import content
from paddle_tfm.imports.foreign import IMPOSSIBLE, Foreign, Side, Weights, sentencepiece_of
from paddle_tfm.imports.marian_options import NAME, Options
from paddle_tfm.language import _

LARGEST_TEXT = 1 << 26  # bytes of a vocabulary
END, UNKNOWN = ("</s>", "eos"), ("<unk>", "UNK")  # Marian's and Nematus' names
DECODING = {"beam-size": 12, "normalize": 0.0, "word-penalty": 0.0, "max-length-factor": 3.0}  # Marian's defaults
SUBLAYERS = {  # of a layer: ours, theirs, and before the names of its norms
    "encoder": (("self_attention", "self", "self_Wo"), ("feed_forward", "ffn", "ffn_ffn")),
    "decoder": (
        ("self_attention", "self", "self_Wo"),
        ("cross_attention", "context", "context_Wo"),
        ("feed_forward", "ffn", "ffn_ffn"),
    ),
}


def read_marian(path: Path, as_trained: bool = False) -> Foreign:
    """The model of a folder, or of its `.npz` file or `decoder.yml`.

    Args:
        as_trained: as of `Options`.
    Raises:
        UserError: a file is missing or damaged, or asks for what nothing here computes.
    """
    folder = path if path.is_dir() else path.parent
    decoder = _decoder(path, folder)
    model = _model_file(path, folder, decoder)
    arrays = _arrays_of(model)
    if NAME not in arrays:
        raise UserError(_("{file}: it holds no {name}, so it is no model of Marian").format(file=model, name=NAME))
    options = Options(arrays.pop(NAME).tobytes(), str(model), as_trained)
    sides = dict(zip(("source", "target"), _sides(folder, decoder, options)))
    weights = Weights(model, {name: array for name, array in arrays.items() if not name.startswith("special:")})
    ours = dict(_arrays(options, weights, sides))
    weights.require_all_taken()
    remarks = list(_remarks(options, sides))
    recipe = {"model": options.model(), **_searches(decoder, remarks)}
    origin = {"toolkit": "Marian", "version": str(options.values.get("version", "?")), "model": str(model)}
    shared = sides["source"].pieces == sides["target"].pieces
    if options.shares_embeddings and not shared:
        raise UserError(f"{model}: its sides share an embedding, but not a vocabulary")
    return Foreign(origin, recipe, ours, sides, shared, remarks)


# --------------------------------------------------------------------------------------------------------------- files


def _decoder(path: Path, folder: Path) -> dict[str, Any]:
    """What `decoder.yml`, or a single `*.decoder.yml`, holds; empty without one."""
    named = [folder / "decoder.yml"] if (folder / "decoder.yml").is_file() else sorted(folder.glob("*.decoder.yml"))
    named = [path] if path.suffix in (".yml", ".yaml") else named
    if len(named) != 1:
        return {}
    values = _yaml(named[0], yaml.SafeLoader)
    if not isinstance(values, dict):
        raise UserError(f"{named[0]}: must hold options of Marian's decoder")
    return values


def _yaml(file: Path, loader: type) -> Any:
    try:
        return yaml.load(content(file, LARGEST_TEXT).decode(), loader)
    except OSError as error:
        raise UserError(_("{path}: cannot be read: {why}").format(path=file, why=error.strerror)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).replace("\n", " ")
        raise UserError(f"{file}: no YAML that can be read: {reason}") from error


def _listed(folder: Path, decoder: Mapping[str, Any], key: str) -> list[Path]:
    """The files that the decoder's options name, beside them or as they stand."""
    names = decoder.get(key) or []
    names = names if isinstance(names, list) else [names]
    paths = [Path(str(name)) for name in names]
    return [folder / each.name if (folder / each.name).is_file() else folder / each for each in paths]


def _model_file(path: Path, folder: Path, decoder: Mapping[str, Any]) -> Path:
    if path.suffix == ".npz":
        return path
    if path.suffix == ".bin":
        text = _("{file}: Marian's binary format is not read; `marian-conv --from {file} --to model.npz` makes it .npz")
        raise UserError(text.format(file=path))
    files = _listed(folder, decoder, "models")
    files = files or [each for each in sorted(folder.glob("*.npz")) if not each.name.endswith(".optimizer.npz")]
    if len(files) != 1:
        text = _("{path}: it must be, hold or name one .npz file, but has {files}; name the file itself")
        raise UserError(text.format(path=path, files=", ".join(each.name for each in files) or "none"))
    return files[0]


def _arrays_of(file: Path) -> dict[str, np.ndarray]:
    """name → array of all that a .npz file holds, read without pickle.

    Raises:
        UserError: it cannot be read, or is no .npz file.
    """
    try:
        with np.load(file, allow_pickle=False) as members:
            memory.require(sum(member.file_size for member in members.zip.infolist()), str(file))
            return {name: np.asarray(members[name]) for name in members.files}
    except FileNotFoundError as error:
        raise UserError(_("{path}: no such file").format(path=file)) from error
    except (OSError, zipfile.BadZipFile, EOFError, MemoryError, RuntimeError, ValueError, AttributeError) as error:
        raise UserError(f"{file}: no .npz file that can be read: {error}") from error


def _sides(folder: Path, decoder: Mapping[str, Any], options: Options) -> Iterator[Side]:
    files = _listed(folder, decoder, "vocabs")
    if not files:
        files = sorted({*folder.glob("*vocab*.yml"), *folder.glob("*vocab*.spm")})
    if len(files) not in (1, 2):
        text = _(
            "{folder}: its vocabularies are not known: name one or two in `vocabs:` of decoder.yml (there are {files})"
        )
        raise UserError(text.format(folder=folder, files=", ".join(each.name for each in files) or "none"))
    for side, file, rows in zip(("source", "target"), [files[0], files[-1]], options.values["dim-vocabs"]):
        yield _side(side, file, rows, folder)


def _side(side: str, file: Path, rows: int, folder: Path) -> Side:
    if file.suffix == ".spm":
        processor = sentencepiece_of(file)
        pieces = [processor.id_to_piece(i) for i in range(len(processor))]
        end, unknown, spm = processor.eos_id(), processor.unk_id(), content(file)
    else:
        pieces = _pieces(file)
        end, unknown = (_place(pieces, names, i, file) for i, names in enumerate((END, UNKNOWN)))
        models = {each.stem: each for each in sorted(folder.glob("*.spm"))}
        model = models.get(side) or (next(iter(models.values())) if len(models) == 1 else None)
        if models and model is None:
            text = _("{folder}: which SentencePiece model is of which side? Call them source.spm and target.spm")
            raise UserError(text.format(folder=folder))
        spm = None
        if model is not None:
            sentencepiece_of(model)
            spm = content(model)
    if len(pieces) > rows:
        pieces = pieces[:rows]  # as Marian does: it reads no more of a vocabulary
    pieces += [f"<{i}>" for i in range(len(pieces), rows)]
    if not 0 <= end < rows or not 0 <= unknown < rows:
        raise UserError(f"{file}: it has no end or no unknown piece")
    return Side(pieces, end, unknown, spm)


def _pieces(file: Path) -> list[str]:
    """The pieces of a vocabulary in YAML, {piece: id}, in the order of their ids."""
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # every key is the text that it is, `no` and `1` too
    values = _yaml(file, loader)
    try:
        by_id = {int(number): str(piece) for piece, number in values.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise UserError(f"{file}: must hold piece: id in each line") from error
    if sorted(by_id) != list(range(len(values))):
        raise UserError(f"{file}: its ids must be those from 0 on, each once")
    return [by_id[i] for i in range(len(by_id))]


def _place(pieces: list[str], names: tuple[str, str], usual: int, file: Path) -> int:
    """The id of the end (0) or the unknown piece (1): under Nematus' name only at that place."""
    if names[0] in pieces:
        return pieces.index(names[0])
    if len(pieces) > usual and pieces[usual] in ("", names[1]):
        return usual
    raise UserError(_("{file}: it has no piece {name}").format(file=file, name=names[0]))


# -------------------------------------------------------------------------------------------------------------- arrays


def _arrays(options: Options, weights: Weights, sides: Mapping[str, Side]) -> Iterator[tuple[str, np.ndarray]]:
    """Our name → array, for all parameters of the model."""
    width, of_side = options.width, {"encoder": sides["source"], "decoder": sides["target"]}
    tables: dict[str, np.ndarray] = {}
    for side in SUBLAYERS:
        name = "Wemb" if options.shares_embeddings else f"{side}_Wemb"
        tables[side] = weights.take(name, len(of_side[side].pieces), width)
        if side == "decoder" or not options.shares_embeddings:
            yield f"{_of(side)}_embedding.weight", of_side[side].rows(tables[side])
        for i in range(options.depths[side]):
            for ours, array in _layer(options, weights, side, i):
                yield f"{side}.layers.{i}.{ours}", array
        if "n" in options.embedding:
            yield from _norm(options, weights, f"{side}.layers.0.placement.embedding_norm", f"{side}_emb", "_pre")
        if "n" in options.top:
            top = f"{side}.layers.{options.depths[side] - 1}.placement.top_norm"
            yield from _norm(options, weights, top, f"{side}_top")
    yield from _output(options, weights, sides["target"])


def _of(side: str) -> str:
    return {"encoder": "source", "decoder": "target"}[side]


def _layer(options: Options, weights: Weights, side: str, i: int) -> Iterator[tuple[str, np.ndarray]]:
    width, theirs = options.width, f"{side}_l{i + 1}"
    for place, (ours, name, norm) in enumerate(SUBLAYERS[side]):
        if ours == "feed_forward":
            parts = {"inner": ("1", width, options.inner[side]), "output": ("2", options.inner[side], width)}
        else:
            parts = {part: (part[0], width, width) for part in ("query", "key", "value", "output")}
        for part, (letter, rows, columns) in parts.items():
            yield f"{ours}.{part}.weight", weights.take(f"{theirs}_{name}_W{letter}", rows, columns)
            yield f"{ours}.{part}.bias", weights.take(f"{theirs}_{name}_b{letter}", columns)
        if "n" in options.before:
            is_raw = ours == "self_attention" and options.raw_keys(side) is not None
            of_ours = f"{ours}.query_norm" if is_raw else f"placement.before_norms.{place}"
            yield from _norm(options, weights, of_ours, f"{theirs}_{norm}", "_pre")
        if "n" in options.after:
            yield from _norm(options, weights, f"placement.norms.{place}", f"{theirs}_{norm}")


def _norm(
    options: Options, weights: Weights, ours: str, theirs: str, suffix: str = ""
) -> Iterator[tuple[str, np.ndarray]]:
    kind = "ln" if options.norm == "layer" else "rms"
    yield f"{ours}.weight", weights.take(f"{theirs}_{kind}_scale{suffix}", options.width)
    if options.norm == "layer":
        yield f"{ours}.bias", weights.take(f"{theirs}_{kind}_bias{suffix}", options.width)


def _output(options: Options, weights: Weights, side: Side) -> Iterator[tuple[str, np.ndarray]]:
    """The output matrix, unless it is the embedding, and the bias. Marian's softmax knows neither padding nor begin:
    their logits are IMPOSSIBLE."""
    size, name = len(side.pieces), "decoder_ff_logit_out"
    bias = weights.take(f"{name}_b", size) if options.has_bias else np.zeros(size, np.float32)
    if options.ties_output:
        yield "head.bias", side.rows(bias, IMPOSSIBLE)
        return
    is_old = f"{name}_W" in weights
    matrix = (
        weights.take(f"{name}_W", options.width, size).T if is_old else weights.take(f"{name}_Wt", size, options.width)
    )
    yield "head.output.weight", np.ascontiguousarray(side.rows(matrix).T)
    yield "head.output.bias", side.rows(bias, IMPOSSIBLE)


# -------------------------------------------------------------------------------------------------------------- search


def marian_search(size: int, normalize: float, factor: float = 3.0, unknown: bool = False) -> dict[str, Any]:
    """Marian's beam search, which with one place is greedy."""
    bounds = {"unknown": unknown, "max_ratio": factor, "max_extra": round(factor)}
    if size == 1:
        return {"name": "greedy", **bounds}
    return {"name": "beam", "size": size, "alpha": normalize, "penalty": "power", "narrowing": True, **bounds}


def _searches(decoder: Mapping[str, Any], remarks: list[str]) -> dict[str, Any]:
    """The recipe's searches, as the decoder's options have them."""
    values = {key: decoder.get(key, default) for key, default in DECODING.items()}
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise UserError(f"decoder.yml: `{key}` must be a number, but is {value}")
    if values["word-penalty"]:
        remarks.append(_("decoder.yml: word-penalty {value} is left out").format(value=values["word-penalty"]))
    if decoder.get("shortlist"):
        remarks.append(_("decoder.yml: the shortlist is left out: all pieces are possible"))
    of_all = float(values["max-length-factor"]), bool(decoder.get("allow-unk", False))
    search = marian_search(int(values["beam-size"]), float(values["normalize"]), *of_all)
    return {"search": search, "evaluate": {"search": marian_search(1, 0.0, *of_all)}}


def _remarks(options: Options, sides: Mapping[str, Side]) -> Iterator[str]:
    if any(side.sentencepiece is None for side in sides.values()):
        yield _("there is no .spm file: texts must come cut into pieces, with spaces between them")
    attention = options.raw_keys("decoder")
    if attention and "first" in attention:
        yield _(
            "Marian normalizes keys and values of the decoder's self-attention while it trains, and when it translates "
            "in the first step only; this run does as Marian translates, and --as-trained as it trains"
        )
    if options.activation == "gelu" and options.model()["feed_forward"] != {"name": "gelu"}:
        yield _("its version of Marian computes gelu as x σ(1.702 x): `swish` with beta 1.702 here")
