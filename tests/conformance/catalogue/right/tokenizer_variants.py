"""Right tokenizers that the zoo does not have, or has in another form."""

import json
from collections import Counter
from itertools import pairwise

from paddle_tfm.protocols import Tokenizer


class BytePairs(Tokenizer):
    """Byte-pair encoding: the most frequent pair is merged again and again (Sennrich et al. 2016, arXiv:1508.07909)."""

    def __init__(self, merges: int = 60):
        self.merges, self.known = merges, {}

    def normalize(self, text):
        return " ".join(text.replace("▁", "_").split())

    def fit(self, texts):
        words = Counter(word for text in texts for word in self.normalize(text).split())
        pieces, self.ranks, self.known = {word: ["▁", *word] for word in words}, {}, {}
        for rank in range(self.merges):
            pairs = Counter()
            for word, count in words.items():
                for pair in pairwise(pieces[word]):
                    pairs[pair] += count
            if not pairs:
                break
            best = max(pairs, key=lambda pair: (pairs[pair], pair))
            self.ranks[best] = rank
            pieces = {word: joined(cut, best) for word, cut in pieces.items()}

    def cut(self, word):
        if word not in self.known:
            pieces = ["▁", *word]
            while pairs := [pair for pair in pairwise(pieces) if pair in self.ranks]:
                pieces = joined(pieces, min(pairs, key=self.ranks.get))
            self.known[word] = pieces
        return self.known[word]

    def tokenize(self, text):
        return [piece for word in self.normalize(text).split() for piece in self.cut(word)]

    def detokenize(self, pieces):
        return "".join(pieces).replace("▁", " ").removeprefix(" ")

    def save(self, folder):
        (folder / "pairs.json").write_text(json.dumps(list(self.ranks)), encoding="utf-8")

    def load(self, folder):
        pairs = json.loads((folder / "pairs.json").read_text(encoding="utf-8"))
        self.ranks, self.known = {tuple(pair): rank for rank, pair in enumerate(pairs)}, {}


def joined(pieces, pair):
    """The pieces with each occurrence of the pair as one."""
    out = []
    for piece in pieces:
        if out and (out[-1], piece) == pair:
            out[-1] += piece
        else:
            out.append(piece)
    return out


class Cased(Tokenizer):
    """Words in lower case behind a mark of their case, where that says it all: "New YORK McDonald" is ^ new ^^ york
    McDonald."""

    def normalize(self, text):
        return " ".join(text.replace("^", "ˆ").split())

    def tokenize(self, text):
        pieces = []
        for word in self.normalize(text).split():
            lower = word.lower()
            if word == lower.upper() != lower and len(word) > 1:
                pieces += ["^^", lower]
            elif word != lower and word == lower[:1].upper() + lower[1:]:
                pieces += ["^", lower]
            else:
                pieces.append(word)
        return pieces

    def detokenize(self, pieces):
        words, mark = [], ""
        for piece in pieces:
            if piece in ("^", "^^"):
                mark = piece
            else:
                words.append({"": piece, "^": piece[:1].upper() + piece[1:], "^^": piece.upper()}[mark])
                mark = ""
        return " ".join(words)
