"""The engine's side of a search: a model, a state, and one step at a time over its key/value cache."""

from __future__ import annotations

from collections.abc import Sequence

import paddle
from paddle import Tensor

from paddle_tfm.data.batches import Batch, in_order
from paddle_tfm.data.codec import Encoded
from paddle_tfm.data.vocabulary import BOS, EOS, PAD
from paddle_tfm.errors import UserError
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import NEVER, Decoding, Hypothesis, Search


class ModelDecoding(Decoding):
    """Unfinished outputs of one batch under one model. `steps` counts model calls (tested: one a token)."""

    bos, eos = BOS, EOS

    def __init__(self, model: Transformer, batch: Batch, search: Search):
        lengths = batch.source_valid.astype("int64").sum(1).tolist()
        # A limit for each sentence, not for the batch: an output must not depend on its neighbours.
        self.limits = [min(search.limit(length - 1), model.max_length - 1) for length in lengths]
        self.model = model
        memory = model.encode(batch.source, batch.source_valid, batch.copy_ids, batch.extra)
        self.state = model.start(memory)
        self._never: Tensor | None = None

    def advance(self, tokens: Tensor) -> Tensor:
        """Feed the last tokens int64 [R] → log-probabilities [R, V'] of the next; padding and begin are never next."""
        h, self.state = self.model.decode(tokens.unsqueeze(1), self.state)
        log_probs = self.model.head.log_probs(h, self.state.memory)[:, 0].astype("float32")
        if self._never is None or self._never.shape[0] != log_probs.shape[1]:
            never = [NEVER if i in (PAD, BOS) else 0.0 for i in range(log_probs.shape[1])]
            self._never = paddle.to_tensor(never, dtype="float32")
        return log_probs + self._never

    def select(self, rows: Tensor) -> None:
        """Go on with these rows only."""
        self.state = self.state.select(rows)


def decode_batch(model: Transformer, batch: Batch, search: Search) -> list[list[Hypothesis]]:
    """Hypotheses of each sentence of a batch (of tensors), best first.

    Raises:
        UserError: the search gave none for a sentence.
    """
    with paddle.no_grad():
        found = search.run(ModelDecoding(model, batch, search)) or []
    if len(found) != len(batch.index) or not all(found):
        raise UserError(
            f"search {type(search).__name__}: `run` must return at least one hypothesis for each of "
            f"{len(batch.index)} sentences, but did so for {sum(map(bool, found))}"
        )
    return found


def decode_all(
    model: Transformer, examples: Sequence[Encoded], search: Search, max_tokens: int = 4096, progress=None
) -> list[list[Hypothesis]]:
    """Hypotheses of every example, decoded in batches of like length and put back in order."""
    found: list[list[Hypothesis]] = [[] for _ in examples]
    training = model.training
    model.eval()
    for batch in in_order(examples, max_tokens):
        for i, hypotheses in zip(batch.index, decode_batch(model, batch.tensors(), search)):
            found[i] = hypotheses
        if progress is not None:
            progress(len(batch.index))
    if training:
        model.train()
    return found
