"""Moses' BLEU: texts cut as the data of published systems are, and the formula of multi-bleu.perl."""

import math
import sys
from collections import Counter

import pytest

from paddle_tfm import UserError, create_registry
from paddle_tfm.components import Spec
from paddle_tfm.protocols import Likelihood, Prediction

NONE = Likelihood(0.0, 0, 0)
# Lines of Multi30k's training and validation splits, and the same in the data of Wu et al. 2021 (arXiv:2105.14462), their
# subwords joined: github.com/LividWo/Revisit-MMT, data/multi30k-en-de/{train,valid}.de
PUBLISHED = {
    "Ein Mann mit beginnender Glatze, der eine rote Rettungsweste trägt, sitzt in einem kleinen Boot.": (
        "ein mann mit beginnender glatze , der eine rote rettungsweste trägt , sitzt in einem kleinen boot ."
    ),
    "Zwei Restaurantmitarbeiter unter einer „Mongolian BBQ“-Leuchtreklame übergeben einen Teller mit Essen.": (
        "zwei restaurantmitarbeiter unter einer &quot; mongolian bbq &quot; -leuchtreklame übergeben einen teller mit "
        "essen ."
    ),
    # lower-cased before it is cut: "Bart." with its capital is an abbreviation for Moses
    "Der Mann in der Robe hat Gold auf dem Bart.": "der mann in der robe hat gold auf dem bart .",
    # the mark of quotation goes before a full stop at the end of a line
    "Ein Mann in einem blauen Hemd hält ein Schild, auf dem steht: „Come on now ... what's gayer than tea.“": (
        "ein mann in einem blauen hemd hält ein schild , auf dem steht : &quot; come on now ... what &apos; s gayer than "
        "tea &quot; ."
    ),
}


@pytest.fixture
def metric():
    pytest.importorskip("sacremoses", reason="the optional package sacremoses is not installed")
    return create_registry().build("metric", Spec("moses_bleu"), "metric")


def multi_bleu(outputs, references):
    """The formula of multi-bleu.perl for one reference, over the words between spaces."""
    precisions, c, r = [], 0, 0
    for n in range(1, 5):
        matched = total = 0
        for output, reference in zip(outputs, references, strict=True):
            ours, theirs = (Counter(zip(*(text.split()[i:] for i in range(n)))) for text in (output, reference))
            matched, total = matched + (ours & theirs).total(), total + ours.total()
            if n == 1:
                c, r = c + ours.total(), r + theirs.total()
        precisions.append(matched / total)
    return 100 * min(1, math.exp(1 - r / c)) * math.prod(precisions) ** 0.25


def test_texts_are_cut_as_the_published_data_are(metric):
    assert {text: metric.words(text) for text in PUBLISHED} == PUBLISHED


def test_the_references_have_as_many_words_as_the_published_score_says(metric, flickr):
    """ "reflen=12103": README-baseline.md of the same repository."""
    assert sum(len(metric.words(text).split()) for text in flickr) == 12_103


def test_the_value_is_the_formula_over_published_words(metric):
    references = list(PUBLISHED)
    outputs = [
        text.replace("einen Teller mit ", "").replace("Hemd", "hemd").replace("sitzt", "ist") for text in references
    ]
    cut = {"einen teller mit ": "", "sitzt": "ist"}
    words = list(PUBLISHED.values())
    for old, new in cut.items():
        words = [text.replace(old, new) for text in words]
    value = metric.compute([Prediction("", *pair) for pair in zip(references, outputs)], NONE)
    assert value == pytest.approx(multi_bleu(words, PUBLISHED.values()), rel=1e-12)
    assert 50 < value < 100


def test_case_and_the_shape_of_quotation_marks_do_not_count(metric):
    pairs = [Prediction("", text, text.upper().replace("„", '"').replace("“", '"')) for text in PUBLISHED]
    assert metric.compute(pairs, NONE) == pytest.approx(100)


def test_its_signature_names_what_cut_the_words(metric):
    assert "tok:none|smooth:none" in metric.signature()
    assert "|moses:de,normalized,lower|sacremoses:" in metric.signature()


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    monkeypatch.setattr("paddle_tfm_plugins.metric.moses_bleu.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install sacremoses"):
        create_registry().build("metric", Spec("moses_bleu"), "metric")
