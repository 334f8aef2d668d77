"""The workload of a benchmark, written by the engine's side for the others: sizes, initial values and batches."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

BEAM, ALPHA = 5, 1.0  # of the beam search
STEPS = 4  # of a turn of training, each on another batch

FIELDS = ("source", "source_valid", "target_in", "target_valid", "target_out")


@dataclass(frozen=True)
class PeerSizes:
    """The model that every library builds: an encoder-decoder Transformer with sinusoidal positions.

    Args:
        normalize_before: pre-norm, with a norm at the end of each stack; otherwise post-norm, without.
        inner_dropout: dropout on the feed-forward's hidden layer.
    """

    source_vocabulary: int
    target_vocabulary: int
    d_model: int
    num_heads: int
    d_ff: int
    encoder_layers: int
    decoder_layers: int
    dropout: float
    embedding_dropout: float
    inner_dropout: float
    max_length: int
    pad_id: int
    normalize_before: bool
    scale_embedding: bool = True

    @property
    def embedding_factor(self) -> float:
        """What embeddings are multiplied by."""
        return math.sqrt(self.d_model) if self.scale_embedding else 1.0


@dataclass(frozen=True)
class Workload:
    """What a peer is built from, as NumPy arrays and numbers, so that no side needs the library of another.

    Args:
        sizes: the fields of `PeerSizes`, and what single sides need beside them.
        weights: the engine's initial values, path → array; matrices are [in, out].
        batches: for each batch the arrays `FIELDS`, in that order: ids int64 and validity bool, [B, S] and [B, T].
        clip_norm, learning_rate: of the step.
    """

    sizes: dict
    weights: dict[str, np.ndarray]
    batches: Sequence[list[np.ndarray]]
    clip_norm: float | None
    learning_rate: float

    def write(self, folder: Path) -> None:
        """Write it to files in `folder`."""
        arrays = {f"{i}.{name}": part for i, batch in enumerate(self.batches) for name, part in zip(FIELDS, batch)}
        _save(folder / "batches.npz", arrays)
        _save(folder / "weights.npz", self.weights)
        facts = {"sizes": self.sizes, "clip_norm": self.clip_norm, "learning_rate": self.learning_rate}
        (folder / "workload.json").write_text(json.dumps(facts), "utf-8")

    @classmethod
    def read(cls, folder: Path) -> Workload:
        """Read the files of `write`."""
        with np.load(folder / "weights.npz") as arrays:
            weights = dict(arrays)
        with np.load(folder / "batches.npz") as arrays:
            count = len(arrays.files) // len(FIELDS)
            batches = [[arrays[f"{i}.{name}"] for name in FIELDS] for i in range(count)]
        return cls(weights=weights, batches=batches, **json.loads((folder / "workload.json").read_text("utf-8")))

    @property
    def peer_sizes(self) -> PeerSizes:
        """The sizes that all sides share."""
        names = [each.name for each in fields(PeerSizes)]
        return PeerSizes(**{name: self.sizes[name] for name in names if name in self.sizes})

    def jobs(self) -> dict[str, list[list[np.ndarray]]]:
        """The batches of each job of `sides.SEARCH`; `sizes` has their numbers."""
        batches = iter(self.batches)
        return {job: [next(batches) for _ in range(number)] for job, number in self.sizes["jobs"].items()}


def _save(file: Path, arrays: Mapping[str, Any]) -> None:
    """Arrays by name. (`Any`, as `savez` has one keyword that is no array.)"""
    np.savez(file, **arrays)


def counterparts_of(
    weights: Mapping[str, np.ndarray],
    shapes: Mapping[str, Sequence[int]],
    names: Iterator[tuple[str, Sequence[str]]],
    transposed: bool,
) -> Iterator[tuple[str, np.ndarray]]:
    """(name, array) of each parameter of another library's model, from the state of one of our Transformers.

    Args:
        weights: our state, path → array; matrices are [in, out]. shapes: of their parameters. names: pairs each of
            theirs with those of ours that are concatenated in it. transposed: whether their matrices are [out, in].

    Raises:
        ValueError: a parameter of either has no counterpart, or another shape.
    """
    sources = dict(names)
    used = {one for ours in sources.values() for one in ours}
    if lacking := sorted((shapes.keys() ^ sources.keys()) | (weights.keys() ^ used)):
        raise ValueError(f"`weights` must be those of the same model, but without counterpart are {', '.join(lacking)}")
    for name, shape in shapes.items():
        array = np.concatenate([weights[one] for one in sources[name]], -1)
        array = array.T if transposed and "embed" not in name else array
        if array.shape != tuple(shape):
            raise ValueError(f"`{name}` must have the shape {list(shape)}, but has {list(array.shape)}")
        yield name, np.ascontiguousarray(array)


def longest_output(source_length: int, max_length: int) -> int:
    """The limit of our searches: twice the source without its end token, plus twenty."""
    return min(2 * (source_length - 1) + 20, max_length - 1)


def sinusoids(length: int, width: int) -> np.ndarray:
    """sin(p / 10000^(2i / C)) and the cosine of the same angle alternately, float32 [length, C]."""
    channel = np.arange(width)
    angle = np.arange(length)[:, None] * 10000.0 ** (-(channel // 2 * 2) / width)
    return np.where(channel % 2, np.cos(angle), np.sin(angle)).astype(np.float32)
