"""Wrong searches."""

_BEAMS = 'decoding.select(paddle.to_tensor(rows, dtype="int64"))\n                tokens ='
_ENDED = "finished[sentence].append((score / self.penalty(len(ids) + 1), Hypothesis(ids, score)))"
_SURVIVES = "beams[sentence].append(old[i].extended(token, score))"

WRONG = {
    "greedy": [
        (
            "never stops", "if len(ids[sentence]) == decoding.max_lengths[sentence]:",
            "if len(ids[sentence]) == 10**9:", "stops",
        ),
        ("the begin token taken for the end", "if token == decoding.eos:", "if token == decoding.bos:", "stops"),
        (
            "the end is part of the output",
            "if token == decoding.eos:\n                    continue\n                ids[sentence].append(token)",
            "ids[sentence].append(token)\n                if token == decoding.eos:\n                    continue",
            "stops",
        ),
        (
            "the end is not scored", "scores[sentence] += float(found[row, token])",
            "scores[sentence] += float(found[row, token]) * (token != decoding.eos)", "scores",
        ),
        (
            "one choice for all rows", "best = np.argmax(found, axis=-1)",
            "best = np.full(len(found), np.argmax(found.sum(0)))", "independent",
        ),
        (
            "the second best", "best = np.argmax(found, axis=-1)", "best = np.argsort(found, axis=-1)[:, -2]", "greedy",
        ),
        ("two outputs", "[[Hypothesis(found, score)] for", "[[Hypothesis(found, score)] * 2 for", "counts"),
        (
            "finished rows leave, the others are mixed up", 'decoding.select(paddle.to_tensor(stay, dtype="int64"))',
            'decoding.select(paddle.to_tensor(stay[::-1], dtype="int64"))', "scores",
        ),
        ("scores of the batch before", "scores, open_rows = [[] for _ in range(count)], [0.0] * count, list(range(count))",
         "scores, open_rows = self.__dict__.setdefault('kept', [[] for _ in range(count)]), [0.0] * count, list(range(count))",
         "independent"),
        ("one token too few", "if len(ids[sentence]) == decoding.max_lengths[sentence]:",
         "if len(ids[sentence]) == decoding.max_lengths[sentence] - 1:", "stops"),
        ("the lengths that are left, counted down in place", "ids[sentence].append(token)",
         "ids[sentence].append(token)\n                decoding.max_lengths[sentence] += len(ids[sentence]) % 2", "independent"),
    ],
    "search/beam": [
        ("the worst first", "sorted(outputs, key=lambda item: -item[0])[:wanted] for",
         "sorted(outputs, key=lambda item: -item[0])[:wanted][::-1] for", "best_first"),
        (
            "the first output that ends is enough, where one is wanted",
            "        if len(finished) < wanted:\n            return False",
            "        if wanted == 1 or len(finished) < wanted:\n            return wanted == 1 and bool(finished)", "wanted",
        ),
        ("each output twice",
         "finished[sentence].append((score / self.penalty(len(ids) + 1), Hypothesis(ids, score)))",
         "finished[sentence] += 2 * [(score / self.penalty(len(ids) + 1), Hypothesis(ids, score))]", "differing"),
        ("caches stay where the number of rows does", _BEAMS,
         _BEAMS.replace("(rows,", "(rows if len(rows) != len(log_probs) else list(range(len(rows))),"), "scores"),
        ("caches in the order of rows, not of beams", _BEAMS, _BEAMS.replace("(rows,", "(sorted(rows),"),
         "scores"),
        ("tokens of one beam behind those of another", _SURVIVES,
         _SURVIVES.replace("old[i]", "old[min(len(survivors), len(old) - 1)]"), "scores"),
        ("the first output's score for all", "return [[hypothesis for _, hypothesis in outputs] for outputs in ranked]",
         "return [[Hypothesis(each.ids, outputs[0][1].score) for _, each in outputs] for outputs in ranked]", "scores"),
        ("the score over its penalty", _ENDED,
         _ENDED.replace("Hypothesis(ids, score)", "Hypothesis(ids, score / self.penalty(len(ids) + 1))"), "scores"),
        ("the worst of what is wanted", "[:wanted] for outputs in finished]", "[-wanted:] for outputs in finished]",
         "wanted"),
        ("the least likely of the candidates grow", "return [list(zip(score, i, token))[:number] for",
         "return [list(zip(score, i, token))[:number][::-1] for", "likelier_than_greedy"),
    ],
    "search/sampling": [
        ("one draw for all steps", "output.number, len(output.ids))", "output.number)", "fresh_draws"),
        ("the draws of every second step", "output.number, len(output.ids))",
         "output.number, len(output.ids) // 2)", "fresh_draws"),
    ],
}  # fmt: skip
