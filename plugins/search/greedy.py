"""Greedy search."""

from __future__ import annotations

import paddle

from paddle_tfm.protocols import Decoding, Hypothesis
from paddle_tfm_plugins.search._bounded import Bounded


class Greedy(Bounded):
    """The most probable token at each step.

    Options: max_ratio and max_extra bound the output at max_ratio · source length + max_extra tokens. Sentences that
    have ended leave the batch.
    """

    def run(self, decoding: Decoding) -> list[list[Hypothesis]]:
        count = len(decoding.limits)
        ids: list[list[int]] = [[] for _ in range(count)]
        scores = [0.0] * count
        alive = list(range(count))
        tokens = paddle.full([count], decoding.bos, dtype="int64")
        while alive:
            best, chosen = decoding.advance(tokens).topk(1)  # [R, 1]
            going = []
            for row, (sentence, token, score) in enumerate(zip(alive, chosen[:, 0].tolist(), best[:, 0].tolist())):
                scores[sentence] += score
                if token == decoding.eos:
                    continue
                ids[sentence].append(token)
                if len(ids[sentence]) < decoding.limits[sentence]:
                    going.append(row)
            tokens = chosen[:, 0]
            if len(going) < len(alive):
                if not going:
                    break
                rows = paddle.to_tensor(going, dtype="int64")
                decoding.select(rows)
                tokens = tokens.index_select(rows)
                alive = [alive[row] for row in going]
        return [[Hypothesis(found, score)] for found, score in zip(ids, scores)]
