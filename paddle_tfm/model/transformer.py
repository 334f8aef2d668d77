"""The encoder-decoder Transformer: embeddings, two stacks and a head, whatever variants they hold.

Source of the architecture: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762.
"""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from paddle_tfm.data.batches import Batch
from paddle_tfm.layers import Embedding
from paddle_tfm.model.stack import Decoder, DecoderState, Encoder
from paddle_tfm.protocols import Head, Memory, Tap

_SILENT = Tap()


class Transformer(nn.Layer):
    """Source tokens → memory → target tokens.

    Legend: B batch · S source length · T target length · C d_model · V vocabulary.
    """

    def __init__(
        self,
        source_embedding: Embedding | None,
        target_embedding: Embedding,
        encoder: Encoder,
        decoder: Decoder,
        head: Head,
        max_length: int,
    ):
        super().__init__()
        self.source_embedding = source_embedding  # None: shared with the target's
        self.target_embedding = target_embedding
        self.encoder = encoder
        self.decoder = decoder
        self.head = head
        self.max_length = max_length

    def encode(
        self,
        source: Tensor,
        valid: Tensor,
        copy_ids: Tensor | None = None,
        extra: int = 0,
        tap: Tap = _SILENT,
    ) -> Memory:
        """source int64 [B, S], valid bool [B, S] → what the decoder may look at."""
        embedding = self.source_embedding if self.source_embedding is not None else self.target_embedding
        x, positions = self.encoder(embedding(source), valid, tap)
        return Memory(x, positions, valid, source if copy_ids is None else copy_ids, extra)

    def start(self, memory: Memory) -> DecoderState:
        """The decoder's state before the first token."""
        return self.decoder.start(memory)

    def decode(
        self, tokens: Tensor, state: DecoderState, valid: Tensor | None = None, tap: Tap = _SILENT
    ) -> tuple[Tensor, DecoderState]:
        """The next tokens int64 [B, T] → (h [B, T, C], the state with them added). `valid` None: all are real."""
        if valid is None:
            valid = paddle.ones(tokens.shape, dtype="bool")
        return self.decoder(self.target_embedding(tokens), state, valid, tap)

    def forward(self, batch: Batch, tap: Tap = _SILENT) -> tuple[Tensor, Memory]:
        """Teacher forcing: all target positions at once → (h [B, T, C], memory)."""
        memory = self.encode(batch.source, batch.source_valid, batch.copy_ids, batch.extra, tap)
        h, _ = self.decode(batch.target_in, self.start(memory), batch.target_valid, tap)
        return h, memory

    def target(self, batch: Batch) -> Tensor:
        """The ids [B, T] that the head is to produce: with words of the source, where it can."""
        return batch.target_copy if self.head.extends_vocabulary else batch.target_out

    def loss(self, batch: Batch, smoothing: float = 0.0, tap: Tap = _SILENT) -> Tensor:
        """The sum over real target tokens of their cross entropy, in nats: a scalar. Divide by `batch.tokens`."""
        h, memory = self(batch, tap)
        losses = self.head.loss(h, self.target(batch), memory, smoothing)  # [B, T]
        return (losses * batch.target_valid.astype(losses.dtype)).sum()
