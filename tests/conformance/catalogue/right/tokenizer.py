"""Words that the training texts showed, others by character: the twin of mutants of a tokenizer."""

import json

from paddle_tfm.protocols import Tokenizer


class Twin(Tokenizer):
    sampling = True

    def fit(self, texts):
        self.words = sorted({word for text in texts for word in self.marked(text)})

    def marked(self, text):
        return ["▁" + word for word in self.normalize(text).split()]

    def normalize(self, text):
        return " ".join(text.replace("▁", "_").split())

    def tokenize(self, text):
        return [piece for word in self.marked(text) for piece in ([word] if word in self.words else word)]

    def sample(self, text, rng):
        return [piece for word in self.marked(text) for piece in ([word] if rng.random() < 0.5 else word)]

    def pieces(self):
        return list(self.words)

    def detokenize(self, pieces):
        return "".join(pieces).replace("▁", " ").removeprefix(" ")

    def save(self, folder):
        (folder / "words.json").write_text(json.dumps(self.words))

    def load(self, folder):
        self.words = json.loads((folder / "words.json").read_text())
