"""What the searches share that choose one token after another and never revise one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.protocols import Decoding, Hypothesis
from paddle_tfm_plugins.search._bounded import Bounded


@dataclass
class Output:
    """An unfinished output: its sentence's index in the batch, its sentence's number, its own number among the outputs
    of that sentence, its tokens so far and their log-probability."""

    index: int
    sentence: int
    number: int
    ids: list[int] = field(default_factory=list)
    score: float = 0.0


class OneByOne(Bounded):
    """`nbest` outputs of each sentence, independent of each other. A finished output leaves the batch."""

    def choose(self, log_probs: Tensor, outputs: Sequence[Output]) -> np.ndarray:
        """The next token of each unfinished output, int64 [R], from log_probs [R, V']."""
        raise NotImplementedError

    def run(self, decoding: Decoding) -> list[list[Hypothesis]]:
        numbered = list(enumerate(decoding.sentences))
        outputs = [[Output(index, sentence, i) for i in range(self.nbest)] for index, sentence in numbered]
        alive = [output for several in outputs for output in several]
        if self.nbest > 1:
            decoding.select(paddle.to_tensor([output.index for output in alive], dtype="int64"))
        tokens = paddle.full([len(alive)], decoding.bos, dtype="int64")
        while alive:
            log_probs = decoding.advance(tokens)  # [R, V']
            chosen = self.choose(log_probs, alive)
            full = [len(output.ids) == decoding.max_lengths[output.index] for output in alive]
            if any(full):
                chosen = np.where(full, decoding.eos, chosen)
            scores = log_probs.take_along_axis(paddle.to_tensor(chosen).unsqueeze(1), 1).squeeze(1)  # [R, 1] -> [R]
            unfinished = []
            for row, (output, token, score) in enumerate(zip(alive, chosen.tolist(), scores.tolist())):
                output.score += score
                if token != decoding.eos:
                    output.ids.append(token)
                    unfinished.append(row)
            if unfinished and len(unfinished) < len(alive):
                decoding.select(paddle.to_tensor(unfinished, dtype="int64"))
                chosen = chosen[unfinished]
            tokens = paddle.to_tensor(chosen)
            alive = [alive[row] for row in unfinished]
        return [
            [Hypothesis(output.ids, output.score) for output in sorted(several, key=lambda output: -output.score)]
            for several in outputs
        ]
