"""What must stand beside a score, in words: of one run, and of several variants."""

import random

import pytest

from paddle_tfm.caveats import BY_HEART, FEW_PAIRS, SELDOM, Reach, causes, overlap, repeats, repetition, said, seldom

FULL = {"texts": 10, "cut": 4, "beyond": 6, "longest": 14, "most": 9}


def run(**caveats):
    return {"caveats": caveats}


def test_cut_outputs_and_references_out_of_reach_are_said_with_what_bounds_them():
    (sentence,) = said({"a": [run(**{"test@far": {"reach": FULL}}), run(**{"test@far": {"reach": FULL}})]})
    assert sentence == (
        "test@far: 8 of 20 outputs were cut at 9 pieces (model.max_length − 1); 12 of 20 references have more, up to "
        "14; raise model.max_length, or set evaluate.tests.far.max_length if its encodings know positions beyond"
    )
    search = (
        "the search's limit; 6 of 10 references have more, up to 14; raise the search's max_ratio, max_extra or max_"
    )
    assert search in Reach(**FULL, by_search=6).sentences()[0]
    both = Reach(**FULL, by_search=3).sentences()[0]
    assert "at the limit of search or model; " in both and both.endswith("or max_length, and model.max_length")
    assert Reach(10, cut=4, longest=9, most=9).sentences() == [
        "4 of 10 outputs were cut at 9 pieces (model.max_length − 1); each reference fits, so they found no end by "
        "themselves"
    ]
    assert Reach(10, longest=9, most=9).sentences() == [] == Reach(1000, cut=9, longest=9, most=9).sentences()


def test_texts_longer_than_any_in_training_are_said():
    reach = Reach(most=9)
    for pieces in (9, 10, 12):
        reach.add(pieces)
    assert reach.sentences() == [
        "2 of 3 texts have more than the 9 pieces that any text of training had (model.max_length)"
    ]


def test_variants_of_which_the_same_is_to_be_said_share_a_line():
    more, shorter = {**FULL, "cut": 5}, {**FULL, "most": 7}
    runs = {name: [run(test={"reach": reach})] for name, reach in (("a", FULL), ("b", shorter), ("c", more))}
    assert [line.partition(" outputs")[0] for line in said(runs)] == ["test, a and c: 9 of 20", "test, b: 4 of 10"]
    assert said({key: [run(test={"reach": FULL})] for key in "ab"})[0].startswith("test, each variant: 8 of 20 outputs")


def test_scores_of_the_test_need_nothing_beside_them_of_the_validation_split():
    of_valid = run(valid={"reach": FULL})
    assert len(said({"a": [of_valid]})) == 1
    assert said({"a": [of_valid, run(test={"reach": {**FULL, "cut": 0, "beyond": 0}})]}) == []


def test_texts_that_were_trained_on_are_said():
    counts = {"valid": {"texts": 1200, "sources": 1001, "pairs": 7}, "test": {"texts": 5, "sources": 0}}
    assert (
        overlap(counts)
        == "in the training split too: 1,001 of 1,200 sources and 7 pairs of valid; 0 of 5 texts of test"
    )
    none = {"test": {"texts": 5, "sources": 0, "pairs": 0}}
    assert overlap(none) == "" == overlap({}, even_none=True)
    assert overlap(none, even_none=True) == "in the training split too: 0 of 5 sources and 0 pairs of test"


# ------------------------------------------------------------------------------------------------ repeated outputs

WORDS = [f"{i}" for i in range(50)]
SENTENCES = [" ".join(random.Random(i).choices(WORDS, k=7)) for i in range(100)]


def counted(outputs, references):
    texts = [*zip(outputs, references)]
    return repetition(texts, [(output.split(), reference.split()) for output, reference in texts])


@pytest.mark.parametrize(
    "written, share, words",
    [
        (lambda i, right: "" if i < 80 else right, "80%", "are empty"),
        (lambda i, right: "a man in a park ." if i < 93 else right, "93%", "are one and the same"),
        (lambda i, right: f"{i} a man in a park" if i < 93 else f"{right} 0", "93%", "end in the same three words"),
        (lambda i, right: f"{i} {i} {i} {i} {i}" if i < 60 else right, "60%", "repeat the same pieces over and over"),
        (
            lambda i, right: " ".join(WORDS[i % 40 : i % 40 + 5]),
            "100%",
            "are written for several sources, word for word",
        ),
        (lambda i, right: right if i % 8 else f"{i} says {i} 9 9 9", "13%", "repeat the same pieces over and over"),
        (
            lambda i, right: f"{i} in the park in the park in the park {i}",
            "100%",
            "repeat the same pieces over and over",
        ),
    ],
)
def test_outputs_that_repeat_themselves_are_said(written, share, words):
    counts = counted([written(i, right) for i, right in enumerate(SENTENCES)], SENTENCES)
    assert repeats([counts]).startswith(
        f"{share} of the outputs {words}: little was learned yet. Likely too few pairs or "
    )
    whole = counted(SENTENCES, SENTENCES)
    assert f"{share} of the outputs in 1 of 2 runs {words}" in repeats([counts, whole])


def test_few_different_outputs_are_right_where_few_references_differ():
    labels = [("positive", "negative")[i % 3 == 0] for i in range(90)]
    assert repeats([counted(["positive"] * 90, labels)]) == ""  # as many as the references have of it
    tags = ["O O O O O O", "O O B O O O", "O B O O O O"] * 30
    assert repeats([counted(["O O O O O O"] * 90, tags)]) == ""
    steps = ["WALK WALK WALK WALK", "RUN RUN RUN RUN RUN", "TURN WALK"] * 30
    assert repeats([counted(["RUN RUN RUN RUN"] * 45 + ["RUN TURN"] * 45, steps)]) == ""
    ten = [f"class{i % 10}" for i in range(100)]
    assert repeats([counted(["class3"] * 100, ten)]).startswith("90% of the outputs are one and the same (of the refer")


def test_sound_outputs_and_few_texts_say_nothing():
    assert repeats([counted(SENTENCES, SENTENCES)]) == ""
    others = SENTENCES[1:] + SENTENCES[:1]
    assert repeats([counted(others, SENTENCES)]) == ""
    assert repeats([counted(["a b", "a b", "a b"], ["c d", "e f", "g h"])]) == ""
    assert repeats([counted([], [])]) == "" == repeats([])


def test_texts_without_spaces_are_counted_by_characters():
    references = [f"{chr(0x4E00 + i)}{chr(0x5E00 + 7 * i)}{chr(0x6E00 + 3 * i)}的第{i}" for i in range(60)]
    outputs = [f"{chr(0x4E00 + i)}在公园里" for i in range(60)]
    assert "100% of the outputs end in the same three characters" in repeats([counted(outputs, references)])
    texts = [
        *zip(
            [reference[:3] + "会" * 4 if i % 6 == 0 else reference for i, reference in enumerate(references)],
            references,
        )
    ]
    sound = repetition([*zip(references, references)], [(right, right) for right in references])
    assert "17% of the outputs repeat the same pieces" in repeats([repetition(texts, texts)])
    assert repeats([sound]) == ""


# ------------------------------------------------------------------------------------------------------ few pairs


def test_pieces_that_a_few_pairs_hold_too_seldom_are_said():
    def corpus(pairs, words):  # of so many different words on the target side
        return [(["a", "b"], [f"{7 * i + k}" if words is None else f"{(7 * i + k) % words}" for k in range(7)])
                for i in range(pairs)]  # fmt: skip

    (sentence,) = seldom(corpus(2000, 2000))
    assert sentence.startswith("train has 2,000 pairs with 2,000 different target pieces, 7 times each on average: ")
    assert sentence.endswith("; the recipe `few-pairs` is made for up to 10,000 pairs")  # a copy of it, too
    assert seldom(corpus(2000, 7 * 2000 // SELDOM)) == []
    assert seldom(corpus(FEW_PAIRS + 1, None)) == [] != seldom(corpus(FEW_PAIRS, None))
    assert seldom(corpus(BY_HEART - 1, None)) == []  # a handful is there to be learned by heart


def test_what_may_be_the_cause_is_told_once():
    empty = {"caveats": {"test": {"repetition": counted([""] * 100, SENTENCES)}}}
    same = {"caveats": {"test": {"repetition": counted(["a man ."] * 100, SENTENCES)}}}
    one, other = said({"a": [empty], "b": [same]})
    assert one.startswith("test, a: 100% of the outputs are empty: ") and one.endswith(causes())
    assert other == "test, b: 100% of the outputs are one and the same"
