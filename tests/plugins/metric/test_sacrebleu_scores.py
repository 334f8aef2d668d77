"""BLEU, chrF and TER are those of sacreBLEU: its functions and its program."""

import random
import subprocess
import sys

import pytest
import sacrebleu

from paddle_tfm.protocols import Likelihood, Prediction
from paddle_tfm_plugins.metric.bleu import Bleu
from paddle_tfm_plugins.metric.chrf import Chrf
from paddle_tfm_plugins.metric.ter import Ter
from paddle_tfm_plugins.metric.word_error_rate import WordErrorRate

NONE = Likelihood(0.0, 0, 0)
GERMAN = [
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "Mehrere Männer mit Schutzhelmen bedienen ein Antriebsradsystem.",
    "Ein kleines Mädchen klettert in ein Spielhaus aus Holz.",
    "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
    "Zwei Männer stehen am Herd und bereiten Essen zu; „lecker“, sagt einer.",
    "Um 9:30 Uhr kostet das T-Shirt 1.299,50 € – nicht wahr?",
]
CHINESE = ["两个年轻的白人男子在户外。", "一个穿蓝衬衫的男人站在梯子上擦窗户。", "汤姆说:“我是 Anna。”"]


def perturbed(texts, seed):
    """Texts with words dropped, doubled, swapped, and capitals lost."""
    draw = random.Random(seed)
    for text in texts:
        words = text.split(" ") if " " in text else list(text)
        joint = " " if " " in text else ""
        i = draw.randrange(len(words))
        if draw.random() < 0.5:
            words[i] = words[i].lower()
        if len(words) > 3 and draw.random() < 0.7:
            del words[draw.randrange(len(words))]
        if draw.random() < 0.3:
            words.insert(0, words[-1])
        if draw.random() < 0.5:
            words[0], words[-1] = words[-1], words[0]
        yield joint.join(words)


def predictions(references, seed=0):
    return [Prediction("", *pair) for pair in zip(references, perturbed(references, seed), strict=True)]


def columns(pairs):
    return [pair.hypothesis for pair in pairs], [[pair.reference for pair in pairs]]


CASES = [
    (Bleu, {}, sacrebleu.corpus_bleu, {}),
    (Bleu, {"lowercase": True}, sacrebleu.corpus_bleu, {"lowercase": True}),
    (Bleu, {"tokenize": "intl"}, sacrebleu.corpus_bleu, {"tokenize": "intl"}),
    (Bleu, {"tokenize": "char"}, sacrebleu.corpus_bleu, {"tokenize": "char"}),
    (Bleu, {"tokenize": "zh"}, sacrebleu.corpus_bleu, {"tokenize": "zh"}),
    (Bleu, {"tokenize": "none"}, sacrebleu.corpus_bleu, {"tokenize": "none", "force": True}),
    (Bleu, {"smooth": "add-k"}, sacrebleu.corpus_bleu, {"smooth_method": "add-k"}),
    (Bleu, {"smooth": "floor"}, sacrebleu.corpus_bleu, {"smooth_method": "floor"}),
    (Bleu, {"effective_order": True}, sacrebleu.corpus_bleu, {"use_effective_order": True}),
    (Chrf, {}, sacrebleu.corpus_chrf, {}),
    (Chrf, {"word_order": 2}, sacrebleu.corpus_chrf, {"word_order": 2}),
    (Chrf, {"char_order": 4, "beta": 3}, sacrebleu.corpus_chrf, {"char_order": 4, "beta": 3}),
    (Ter, {}, sacrebleu.corpus_ter, {}),
    (Ter, {"case_sensitive": True, "normalized": True}, sacrebleu.corpus_ter,
     {"case_sensitive": True, "normalized": True}),
]  # fmt: skip


@pytest.mark.parametrize(("metric", "options", "function", "theirs"), CASES)
def test_the_value_is_sacrebleu_s(metric, options, function, theirs):
    scores = []
    for pairs in (predictions(GERMAN), predictions(CHINESE), predictions(GERMAN + CHINESE)):
        scores.append(metric(**options).compute(pairs, NONE))
        assert scores[-1] == function(*columns(pairs), **theirs).score
    assert len(set(scores)) > 1 or options == {"smooth": "none"}


def test_the_value_and_the_signature_are_those_of_the_program(tmp_path):
    pairs = predictions(GERMAN)
    hypotheses, (references,) = columns(pairs)
    (tmp_path / "hyp").write_text("\n".join(hypotheses) + "\n", "utf-8")
    (tmp_path / "ref").write_text("\n".join(references) + "\n", "utf-8")
    for metric, name in ((Bleu, "bleu"), (Chrf, "chrf"), (Ter, "ter")):
        command = [sys.executable, "-m", "sacrebleu", "ref", "-i", "hyp", "-m", name, "-w", "9", "-f", "text"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        message, _, score = done.stdout.partition(" = ")
        ours = metric()
        more = "|shifts:to-200-words" if metric is Ter else ""  # no more words are searched for shifts
        assert message.partition("|")[2] + more == ours.signature()
        assert float(score.split()[0]) == pytest.approx(ours.compute(pairs, NONE), abs=1e-9)


@pytest.mark.parametrize(("metric", "scorer"), [(Bleu, sacrebleu.BLEU), (Chrf, sacrebleu.CHRF), (Ter, sacrebleu.TER)])
def test_several_references_are_scored_as_sacrebleu_does(metric, scorer):
    references = [[*perturbed(GERMAN, seed)] for seed in (1, 2, 3)]
    outputs = [*perturbed(GERMAN, 4)]
    pairs = [Prediction("", first, out, others=others) for out, first, *others in zip(outputs, *references)]
    theirs = scorer()
    assert metric().compute(pairs, NONE) == theirs.corpus_score(outputs, references).score
    assert metric().signature(3).startswith(str(theirs.get_signature()))
    assert metric().compute(pairs, NONE) != metric().compute([each._replace(others=()) for each in pairs], NONE)


def test_ter_searches_no_shifts_in_long_texts():
    """Between two texts of 3,000 words the search takes an hour."""
    draw = random.Random(1)
    texts = [" ".join(str(draw.randrange(10)) for _ in range(3_000)) for _ in range(2)]
    moved = "c d a b " + "e f g h " * 49
    pairs = [
        ("c d a b", "a b c d"),
        (moved, "a b c d " + "e f g h " * 49),
        (moved + "i", "a b c d " + "e f g h " * 49 + "i"),
    ]
    assert [Ter().statistics([Prediction("", *pair)]).tolist() for pair in pairs] == [[[1, 4]], [[1, 200]], [[4, 201]]]
    ((edits, words),) = Ter().statistics([Prediction("", *texts)])
    assert (edits, words) == (WordErrorRate().statistics([Prediction("", *texts)])[0, 0], 3_000)
    assert Ter().statistics([Prediction("", *texts, others=(f"{texts[1]} x",))]).tolist() == [[1, 3_000.5]]


def test_a_signature_says_what_was_chosen():
    version = f"version:{sacrebleu.__version__}"
    assert Bleu().signature() == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|{version}"
    chosen = Bleu(tokenize="zh", lowercase=True, smooth="add-k").signature()
    assert chosen == f"nrefs:1|case:lc|eff:no|tok:zh|smooth:add-k[1.00]|{version}"
    assert Chrf(word_order=2).signature() == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|{version}"
    assert Ter().signature() == f"nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|{version}|shifts:to-200-words"
    assert [(m.higher_is_better, m.unit, m.needs_pieces) for m in (Bleu, Chrf, Ter)] == [
        *((True, "points", False), (True, "points", False), (False, "points", False))
    ]
