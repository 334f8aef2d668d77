"""The proof of an export: its greedy outputs beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import paddle

from paddle_tfm.data.batches import collate
from paddle_tfm.data.codec import Codec, Encoded
from paddle_tfm.data.vocabulary import BOS, EOS
from paddle_tfm.export.ctranslate2.decoder import ExportedDecoder
from paddle_tfm.export.ctranslate2.generator import ExportedGenerator
from paddle_tfm.export.ctranslate2.rules import ExportRefused
from paddle_tfm.export.ctranslate2.variables import Variables
from paddle_tfm.inference.generate import continue_ids
from paddle_tfm.language import _
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Decoding, Hypothesis, Search
from paddle_tfm.search.decoding import decode_all

NOISE = 1.0e-4  # nats: tokens whose log-probabilities differ by less are equally probable in float32
CONTINUATION = 32  # tokens that a decoder-only model writes after each prompt


class Proof(NamedTuple):
    """How many outputs were compared; how many were the same; how many differ first where two tokens are equally
    probable (`NOISE`), and by how much at most, in nats."""

    sentences: int
    same: int
    ties: int
    largest_tie: float

    def sentence(self) -> str:
        """What it says, for a person."""
        text = _("{same} of {sentences} greedy outputs the same").format(same=self.same, sentences=self.sentences)
        ties = _(", {number} with a tie of up to {most} nats").format(number=self.ties, most=f"{self.largest_tie:.1g}")
        return text + (ties if self.ties else "")


class Argmax(Search):
    """Greedy search, of which both engines have the same idea."""

    def run(self, decoding: Decoding) -> list[list[Hypothesis]]:
        outputs: list[list[int]] = [[] for _ in decoding.max_lengths]
        alive = list(range(len(outputs)))
        tokens = paddle.full([len(alive)], decoding.bos, "int64")
        while alive:
            chosen = decoding.advance(tokens).argmax(-1).numpy()  # [R]
            rows = [
                row
                for row, (i, token) in enumerate(zip(alive, chosen.tolist()))
                if token != decoding.eos and len(outputs[i]) < decoding.max_lengths[i]
            ]
            for row in rows:
                outputs[alive[row]].append(int(chosen[row]))
            if rows and len(rows) < len(alive):
                decoding.select(paddle.to_tensor(rows, "int64"))
            alive, tokens = [alive[row] for row in rows], paddle.to_tensor(chosen[rows])
        return [[Hypothesis(ids, 0.0)] for ids in outputs]


def _held(search: Search) -> dict[str, int]:
    """How CTranslate2 holds `Argmax`."""
    return {"beam_size": 1}


def prove(model: Transformer, codec: Codec, folder: Path, variables: Variables, examples: Sequence[Encoded]) -> Proof:
    """Compare greedy outputs of the float32 model in `folder` with ours.

    Raises:
        ExportRefused: some differ by more than a tie.
    """
    if model.encoder is None:
        ours, theirs = _continuations(model, codec, folder, variables, examples)
    else:
        sides = codec.source_vocabulary, codec.target_vocabulary
        decoder = ExportedDecoder(model, folder, _held, *sides, variables.positions, scores=False)
        ours, theirs = (
            [list(several[0].ids) for several in decode(examples, Argmax())]
            for decode in (lambda *arguments: decode_all(model, *arguments), decoder)
        )
    gaps = [gap(model, *row) for row in zip(examples, ours, theirs) if row[1] != row[2]]
    ties = [gap for gap in gaps if gap < NOISE]
    if len(ties) < len(gaps):
        raise ExportRefused(
            f"CTranslate2 computes something else with this model: of {len(examples)} greedy outputs, "
            f"{len(gaps) - len(ties)} differ by more than rounding (up to {max(gaps):.2g} nats), so that nothing was "
            "exported"
        )
    return Proof(len(examples), len(examples) - len(gaps), len(ties), max(ties, default=0.0))


def prompt_of(model: Transformer, example: Encoded) -> list[int]:
    """What a decoder-only model is to continue: the first half of a text, if it leaves room."""
    ids = [i for i in example.target if i != EOS]
    return ids[: max(1, min(len(ids) // 2, model.max_length - 1 - CONTINUATION))]


def _continuations(
    model: Transformer, codec: Codec, folder: Path, variables: Variables, examples: Sequence[Encoded]
) -> tuple[list[list[int]], list[list[int]]]:
    """Greedy outputs of both after the prompts, which they begin with."""
    theirs = ExportedGenerator(model, folder, _held, codec.target_vocabulary, variables.prompt_at_once)
    prompts = [prompt_of(model, example) for example in examples]
    return (
        [[*prompt, *continue_ids(model, prompt, CONTINUATION, Argmax()).ids] for prompt in prompts],
        [[*prompt, *theirs(prompt, CONTINUATION, Argmax()).ids] for prompt in prompts],
    )


def gap(model: Transformer, example: Encoded, ours: list[int], theirs: list[int]) -> float:
    """How much more probable to our model is our token than theirs, where the outputs first differ, in nats."""
    ours, theirs = [*ours, EOS], [*theirs, EOS]
    first = next(i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b)
    with paddle.no_grad():
        batch = collate([example]).tensors()
        memory = model.encode(batch.source, batch.source_valid)
        h, _ = model.decode(paddle.to_tensor([[BOS, *ours[:first]]]), model.start(memory))
        log_probs = model.head.log_probs(h[:, -1:], memory).numpy().reshape(-1)
    return float(np.abs(log_probs[ours[first]] - log_probs[theirs[first]]))
