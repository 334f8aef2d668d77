"""Wrong tasks, datasets, tokenizers and metrics."""

_WORDS = "self.words = sorted({word for text in texts for word in self.marked(text)})"

WRONG = {
    "metric": [
        ("the wrong direction", "higher_is_better = True", "higher_is_better = False", "prefers_the_reference"),
        (
            "the source taken for the reference", "p.hypothesis == p.reference", "p.hypothesis != p.source",
            "prefers_the_reference",
        ),
        (
            "depends on the order", "return np.array([[float(p.hypothesis == p.reference), 1.0] for p in predictions])",
            "return np.array([[float(p.hypothesis == p.reference) / (i + 1), 1.0] for i, p in enumerate(predictions)])",
            "order",
        ),
        (
            "recall alone: every word there is is right", "p.hypothesis == p.reference",
            "set(p.reference.split()) <= set(p.hypothesis.split())", "length_is_no_merit",
        ),
        (
            "the longer the better", "float(p.hypothesis == p.reference), 1.0]",
            "len(p.hypothesis.split()) * float(p.hypothesis[:5] == p.reference[:5]), 1.0]", "length_is_no_merit",
        ),
        (
            "a row that knows the others", "float(p.hypothesis == p.reference), 1.0]",
            "float(p.hypothesis == p.reference) / len(predictions), 1.0]", "sums",
        ),
        (
            "pieces, not asked for", "p.hypothesis == p.reference", "p.hypothesis_pieces == p.reference_pieces",
            "asks",
        ),
        ("other references, not asked for", "p.hypothesis == p.reference", "p.hypothesis in p.references", "asks"),
        ("precision alone: the first word is enough", "p.hypothesis == p.reference",
         "p.reference.startswith(p.hypothesis)", "length_is_no_merit"),
        ("a sum where a mean is meant", "float(total[0] / total[1])", "float(total[0])", "order"),
        *(
            (
                f"the mean of the means of batches of {size}", "    def value(self, total):",
                "    def compute(self, predictions, likelihood):\n        return float(np.mean([self.statistics(predictions[i : "
                    f"i + {size}])[:, 0].mean() for i in range(0, len(predictions), {size})]))\n\n    def value(self, total):",
                "order",
            )
            for size in (16, 100)
        ),
        ("known by the output alone", "[[float(p.hypothesis == p.reference), 1.0]",
         "[[self.__dict__.setdefault(p.hypothesis, float(p.hypothesis == p.reference)), 1.0]", "order"),
        (
            "weighed by pieces, by words where there are none", "[[float(p.hypothesis == p.reference), 1.0] for p in",
            "[[float(p.hypothesis == p.reference) * n, float(n)]\n"
                "            for p in predictions for n in [len(p.reference_pieces or p.reference.split())]] + [[0.0, 0.0] for p in",
            "asks",
        ),
    ],
    "tokenizer": [
        ("a space before the text", '.removeprefix(" ")', "", "round_trip"),
        ("the spaces are lost", '.replace("▁", " ")', '.replace("▁", "")', "round_trip"),
        ("what normalize loses is not said", 'self.normalize(text).split()', "self.normalize(text).lower().split()",
         "round_trip"),
        (
            "only ASCII is left", 'text.replace("▁", "_").split()', 'text.encode("ascii", "ignore").decode().split()',
            "keeps_text",
        ),
        ("a piece twice", "return list(self.words)", "return self.words + self.words[:1]", "vocabulary"),
        ("empty pieces", "self.words else word)]", 'self.words else ["", *word])]', "vocabulary"),
        (
            "it learns when it is asked", "self.words else word)]",
            "self.words else (self.words.append(word) or word))]", "same_pieces",
        ),
        (
            "learned from a random half", "for text in texts for", "for text in texts if __import__('random').random() < 0.04 for",
            "same_pieces",
        ),
        ("not all that was learned is saved", "json.dumps(self.words)", "json.dumps(self.words[:9])", "saved"),
        ("NumPy's own draws", "rng.random() < 0.5", "__import__('random').random() < 0.5", "sample"),
        ("a draw that loses a character", "rng.random() < 0.5 else word)", "rng.random() < 0.5 else word[:2])",
         "sample"),
        ("it does not say that it draws", "sampling = True", "sampling = False", "sample"),
        ("texts are gone through twice", "self.words = sorted({word for text in texts for word in self.marked(text)})",
         "seen = {word for text in texts for word in self.marked(text)}\n"
         "        self.words = sorted({word for text in texts for word in self.marked(text)} & seen)", "same_pieces"),
        ("words without their marks", 'return " ".join(text.replace("▁", "_").split())',
         'return " ".join("".join(c for c in __import__("unicodedata").normalize("NFD", text) if __import__("unicodedata")'
         '.category(c) != "Mn").replace("▁", "_").split())', "keeps_text"),
        ("what was cut before the texts were learned", "return [piece for word in self.marked(text) for piece in "
         "([word] if word in self.words else word)]", "return self.__dict__.setdefault('cut', {}).get(text) or self.cut."
         "setdefault(text, [p for word in self.marked(text) for p in ([word] if word in self.words else word)])",
         "learned_again"),
        ("what is loaded is added to what was learned", 'self.words = json.loads(',
         'self.words = getattr(self, "words", []) + json.loads(', "learned_again"),
        (
            "counts that all of them add to", """    def fit(self, texts):
        self.words = sorted({word for text in texts for word in self.marked(text)})""",
            """    def fit(self, texts, counts=__import__("collections").Counter()):
        counts.update(word for text in texts for word in self.marked(text))
        self.words = sorted(word for word in counts if counts[word] > 1)""",
            "apart",
        ),
        ("words that all of them have", "    def fit(self, texts):\n        " + _WORDS,
         "    words = []\n\n    def fit(self, texts):\n"
         "        self.words += sorted({w for text in texts for w in self.marked(text)} - {*self.words})", "apart"),
        ("first words stay first", _WORDS,
         "known = {word for text in texts for word in self.marked(text)}\n"
         "        self.words = sorted(known | {*getattr(self, 'words', ())})", "learned_again"),
        ("learns once only", _WORDS,
         "self.words = getattr(self, 'words', None) or sorted({w for text in texts for w in self.marked(text)})", "learned_again"),
        ("it says that it draws, and never does", "([word] if rng.random() < 0.5 else word)",
         "([word] if word in self.words else word)", "sample"),
        ("words chosen by Python's own hash", _WORDS,
         "self.words = sorted({w for text in texts for w in self.marked(text) if hash(w) % 3})", "same_pieces"),
        ("pieces that can be gone through once",
         "return [piece for word in self.marked(text) for piece in ([word] if word in self.words else word)]",
         "return (piece for word in self.marked(text) for piece in ([word] if word in self.words else word))", "vocabulary"),
    ],
    "task": [
        ("one generator for all calls", 'rng, number = generator("twin", split), 0', "rng, number = self.rng, 0",
         "same_examples"),
        ("a split by Python's own hash", 'digest("twin", source)', "hash(source)", "same_examples"),
        ("random draws of the process", "rng.integers(100, size=rng.integers(1, 6))",
         "__import__('numpy').random.randint(100, size=rng.integers(1, 6))", "same_examples"),
        ("every source in every split", 'if split == {0: "test", 1: "valid"}.get(digest("twin", source) % 10, "train"):',
         "if True:", "splits_disjoint"),
        ("targets of no word", '" ".join(reversed(words))', '" ".join(reversed(words[1:]))', "examples"),
        ("sources of no word", "size=rng.integers(1, 6)", "size=rng.integers(0, 6)", "examples"),
        ("a pair that is no example", 'Example(source, " ".join(reversed(words)))', '(source, " ".join(words))',
         "examples"),
        ("nothing to validate", "while number < self.size:", 'while number < self.size * (split != "valid"):',
         "examples"),
        ("the first words again and again", "words = [str(each) for each in rng.integers(100, size=rng.integers(1, 6))]",
         "words = words if number else [str(each) for each in rng.integers(100, size=rng.integers(1, 6))]", "examples"),
    ],
    "dataset": [
        ("an address that is a text", '(f"{cls.home}/{name}.tsv",)', 'f"{cls.home}/{name}.tsv"', "files_declared"),
        ("a hash that is cut", '"0" * 64', '"0" * 63', "files_declared"),
        ("one name for two files", 'RemoteFile(f"{name}.tsv"', 'RemoteFile("data.tsv"', "files_declared"),
        ("out of the folder", 'RemoteFile(f"{name}.tsv"', 'RemoteFile(f"../{name}.tsv"', "files_declared"),
        ("a file of its own", "self.catalogue() if self.remote else []",
         'self.catalogue() if self.remote else [RemoteFile("more.tsv", ())]', "files_in_catalogue"),
        ("no licence", '"CC0-1.0"', '""', "described"),
        ("the folder of another", '"twin", "https', '"multi30k", "https', "described"),
        ("targets of no word", "str(2 * number)", '""', "reads"),
        ("other examples at each call", "range(first, 2 * first)",
         "range(first, 2 * first + __import__('random').randint(1, 99))", "reads"),
        ("an order by Python's own hash", "for number in range(first, 2 * first))",
         "for number in sorted(range(first, 2 * first), key=lambda number: hash(str(number))))", "reads"),
    ],
    "other_variants:WordF1": [
        ("repeated words count each time",
         "both = sum(min(ours.count(word), theirs.count(word)) for word in set(ours))",
         "both = sum(word in theirs for word in ours)", "length_is_no_merit"),
    ],
    "tokenizer_variants:BytePairs": [
        ("pairs are saved in the order of the alphabet", "json.dumps(list(self.ranks))",
         "json.dumps(sorted(self.ranks))", "saved_order"),
        ("the last pair of a word goes first once loaded", "rank for rank, pair in enumerate(pairs)}, {}",
         "-rank for rank, pair in enumerate(pairs)}, {}", "saved_order"),
        ("words that all of them know", "def cut(self, word):",
         "def cut(self, word, known={}):\n        self.known = known", "apart"),
    ],
    "tokenizer_variants:Cased": [
        ("a capital says that the rest is small", "elif word != lower and word == lower[:1].upper() + lower[1:]:",
         "elif word[0].isupper():", "round_trip"),
        ("the last mark stays", '                mark = ""\n        return', "        return", "round_trip"),
    ],
}  # fmt: skip

WRONG_IN_A_FILE = {
    "tokenizer": [
        ("words in the order of a set", _WORDS, _WORDS.replace("sorted({", "list({"), "same_pieces"),
    ],
    "task": [
        ("numbers in the order of a set", "            if split ==",
         "            source = ' '.join({*source.split()})\n            if split ==", "same_examples"),
    ],
}  # fmt: skip
