"""The Transformer: embeddings, an encoder, a decoder or both, and a head; their components come from plugins.

Sources of the architecture: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762; a decoder alone: Liu et
al. 2018, arXiv:1801.10198; an encoder alone: Devlin et al. 2018, arXiv:1810.04805.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Literal

import paddle
from paddle import Tensor

from paddle_tfm.data.batches import Batch
from paddle_tfm.data.vocabulary import EOS
from paddle_tfm.kernels import Mode, Products, using
from paddle_tfm.layers import Embedding, Layer
from paddle_tfm.model.stack import Decoder, Encoder, Stack
from paddle_tfm.model.state import DecoderState
from paddle_tfm.protocols import Head, Kernel, Memory, Tap

NO_DECODER = "tokens are decoded by a decoder, but this model has none; read its labels with `encode` and `read`"


class Transformer(Layer):
    """An encoder-decoder model maps source tokens to a memory, and that to target tokens; a decoder-only model predicts
    each token from those before it; an encoder-only model predicts a label for each source token (`labels` "token"), or
    one for the whole text ("sequence").

    Legend: B batch · S source length · T target length · C d_model · V vocabulary.
    """

    def __init__(
        self,
        source_embedding: Embedding | None,
        target_embedding: Embedding | None,
        encoder: Encoder | None,
        decoder: Decoder | None,
        head: Head,
        max_length: int,
        labels: str = "token",
        source_end: bool = True,
        kernels: Mapping[Any, Kernel] | None = None,
    ):
        super().__init__()
        self.source_embedding = source_embedding  # None: shared with the target's, or no encoder
        self.target_embedding = target_embedding  # None: no decoder
        self.encoder = encoder
        self.decoder = decoder
        self.head = head
        self.max_length = max_length
        self.labels = labels
        self.source_end = source_end  # whether the end of the source is attended to
        self.kernels = dict(kernels or {})  # class or op → the kernel that computes it in a step or a search
        self.built_with = frozenset(path for path, _ in self.named_buffers())

    @contextmanager
    def up_to(self, max_length: int | None) -> Iterator[None]:
        """Within this block outputs, and what is read, may be so long; None: as the model was built."""
        before, self.max_length = self.max_length, max_length or self.max_length
        try:
            yield
        finally:
            self.max_length = before

    @contextmanager
    def evaluated(self) -> Iterator[None]:
        """Within this block the model is in evaluation mode, and no gradient is kept."""
        training = self.training
        if training:  # the change walks through all layers
            self.eval()
        try:
            with paddle.no_grad():
                yield
        finally:
            if training:
                self.train()

    def computing(self, phase: Literal["step", "search"], products: Products = None) -> AbstractContextManager[None]:
        """A block in which this model's kernels compute what they fit: a step of training, of products as
        `kernels.Mode` says, or a search."""
        return using(Mode(phase, products), self.kernels)

    def built_buffers(self) -> dict[str, Tensor]:
        """Path → buffer, of those that the model was built with: running statistics and tables. Paddle files any tensor
        that is assigned to an attribute under the buffers; what a layer so keeps of a pass, its weights for a plot, is
        no state of the model."""
        return {path: buffer for path, buffer in self.named_buffers() if path in self.built_with}

    def stacks(self) -> dict[str, Stack]:
        """The stacks of this model by name, encoder first."""
        stacks = {"encoder": self.encoder, "decoder": self.decoder}
        return {name: stack for name, stack in stacks.items() if stack is not None}

    def encode(
        self,
        source: Tensor,
        valid: Tensor,
        copy_ids: Tensor | None = None,
        extra: int = 0,
        tap: Tap | None = None,
    ) -> Memory | None:
        """source int64 [B, S], valid bool [B, S] → the memory that the decoder attends to; None without an encoder."""
        if self.encoder is None:
            return None
        embedding = self.source_embedding if self.source_embedding is not None else self.target_embedding
        if embedding is None:
            raise ValueError(
                "a model with an encoder must have an embedding, of its own or of the target, but has none"
            )
        tap = Tap() if tap is None else tap
        if not self.source_end:
            valid = paddle.logical_and(valid, source != EOS)
        with tap.of_this_pass():
            x, positions = self.encoder(embedding(source), valid, tap)
        return Memory(x, positions, valid, source if copy_ids is None else copy_ids, extra)

    def start(self, memory: Memory | None, keep: bool = True) -> DecoderState:
        """The decoder's state before the first token; without `keep`, for a single pass (teacher forcing).

        Raises:
            ValueError: the model has no decoder.
        """
        if self.decoder is None:
            raise ValueError(NO_DECODER)
        return self.decoder.start(memory, keep)

    def decode(
        self, tokens: Tensor, state: DecoderState, valid: Tensor | None = None, tap: Tap | None = None
    ) -> tuple[Tensor, DecoderState]:
        """The next tokens int64 [B, T] → (h [B, T, C], the state with them added). `valid` None: none is padding.

        Raises:
            ValueError: the model has no decoder.
        """
        if self.decoder is None or self.target_embedding is None:
            raise ValueError(NO_DECODER)
        tap = Tap() if tap is None else tap
        with tap.of_this_pass():
            return self.decoder(self.target_embedding(tokens), state, valid, tap)

    def predict(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """The next tokens int64 [B, T], none of them padding → (log-probabilities [B, V'] after the last of them, the
        state with them added).

        Raises:
            ValueError: the model has no decoder.
        """
        h, state = self.decode(tokens, state)
        log_probs, head = self.head.step(h, state.memory, state.head)
        return log_probs, replace(state, head=head) if head else state

    def label_states(self, memory: Memory | None) -> Tensor:
        """Without a decoder: the vectors that the head turns into labels. With `labels` "sequence": [B, 1, C], the
        encoder's output at the end token, which has no label of its own, so that attention can gather the whole text
        there. With "token": the encoder's output [B, S, C]; the end token's vector is computed, but not used.

        Raises:
            ValueError: there is no memory, because the model has no encoder.
        """
        if memory is None:
            raise ValueError("labels are read from an encoder's output, but this model has no encoder; decode instead")
        if self.labels == "token":
            return memory.x
        x, length = memory.x, memory.valid.astype("int64").sum(1, keepdim=True)  # [B, 1]
        last = (paddle.arange(x.shape[1]).unsqueeze(0) == length - 1).astype(x.dtype)  # [B, S]
        return paddle.matmul(last.unsqueeze(1), x)  # [B, 1, S] · [B, S, C]

    def forward(self, batch: Batch[Tensor], tap: Tap | None = None) -> tuple[Tensor, Memory | None]:
        """Teacher forcing: all target positions in one pass → (h [B, T, C], memory)."""
        memory = self.encode(batch.source, batch.source_valid, batch.copy_ids, batch.extra, tap)
        if self.decoder is None:
            return self.label_states(memory)[:, : batch.target_out.shape[1]], memory
        h, _ = self.decode(batch.target_in, self.start(memory, keep=False), batch.target_valid, tap)
        return h, memory

    def target(self, batch: Batch[Tensor]) -> Tensor:
        """The target ids [B, T]: those with ids of copied source words, if the head extends the vocabulary by them."""
        return batch.target_copy if self.head.extends_vocabulary else batch.target_out

    def loss(
        self,
        batch: Batch[Tensor],
        smoothing: float = 0.0,
        tap: Tap | None = None,
        r_drop: float = 0.0,
        tokens: int | None = None,
        batches: int = 1,
    ) -> Tensor:
        """The training loss in nats per token, a scalar:

            loss = Σ over real target tokens of −log p(token) / tokens + Σ auxiliary losses / batches

        Auxiliary losses (`Tap.add_aux_loss`: a mixture's balance, …) belong to a batch and not to its tokens.

        Args:
            smoothing: ε of label smoothing (Szegedy et al. 2016, arXiv:1512.00567).
            tap: also receives the auxiliary losses by name, as they are in the loss, and what layers record.
            r_drop: α of R-Drop (arXiv:2106.14448): two passes p and q with independent dropout, and half of the paper's
                loss, ½ (CE(p) + CE(q)) + α/4 (KL(p ‖ q) + KL(q ‖ p)), so that its scale is that of one pass.
            tokens, batches: of the whole step, of which this batch is a part; None and 1: it is all of it.
        """
        tap = Tap() if tap is None else tap
        pass_tap = replace(tap, aux_losses={})  # `tap` may hold losses of other passes
        losses = self._r_drop(batch, smoothing, r_drop, pass_tap) if r_drop else self._nll(batch, smoothing, pass_tap)
        loss = (losses * batch.target_valid.astype(losses.dtype)).sum() / (tokens or batch.tokens)
        for name, aux_loss in pass_tap.aux_losses.items():
            aux_loss = aux_loss / batches
            loss = loss + aux_loss
            tap.add_aux_loss(name, aux_loss)
        return loss

    def _nll(self, batch: Batch[Tensor], smoothing: float, tap: Tap) -> Tensor:
        """−log p of each target token [B, T]."""
        h, memory = self(batch, tap)
        return self.head.loss(h, self.target(batch), memory, smoothing)

    def _r_drop(self, batch: Batch[Tensor], smoothing: float, alpha: float, tap: Tap) -> Tensor:
        """R-Drop's loss of each target token [B, T]."""
        # Every row twice, [2B, …].
        doubled = batch.map_arrays(lambda part: paddle.stack([part, part], 1).reshape([-1, part.shape[1]]))
        h, memory = self(doubled, tap)
        losses = self.head.loss(h, self.target(doubled), memory, smoothing)  # [2B, T]
        log_probs = self.head.log_probs(h, memory)  # [2B, T, V]
        p, q = log_probs.reshape([-1, 2, *log_probs.shape[1:]]).unbind(1)  # [B, T, V] each
        divergence = ((p.exp() - q.exp()) * (p - q)).sum(-1)  # KL(p ‖ q) + KL(q ‖ p)
        return losses.reshape([-1, 2, losses.shape[1]]).mean(1) + 0.25 * alpha * divergence
