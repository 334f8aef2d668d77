"""The likeliest token at each step: the twin of mutants of a search."""

import numpy as np
import paddle

from paddle_tfm.protocols import Hypothesis, Search


class Twin(Search):
    greedy_with = {}

    def run(self, decoding):
        count = len(decoding.max_lengths)
        ids, scores, open_rows = [[] for _ in range(count)], [0.0] * count, list(range(count))
        tokens = [decoding.bos] * count
        while open_rows:
            found = decoding.advance(paddle.to_tensor(tokens, dtype="int64")).numpy()
            best = np.argmax(found, axis=-1)
            stay, tokens = [], []
            for row, sentence in enumerate(open_rows):
                token = int(best[row])
                if len(ids[sentence]) == decoding.max_lengths[sentence]:
                    token = decoding.eos
                scores[sentence] += float(found[row, token])
                if token == decoding.eos:
                    continue
                ids[sentence].append(token)
                stay.append(row)
                tokens.append(token)
            open_rows = [open_rows[row] for row in stay]
            if open_rows:
                decoding.select(paddle.to_tensor(stay, dtype="int64"))
        return [[Hypothesis(found, score)] for found, score in zip(ids, scores)]
