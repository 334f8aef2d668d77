"""Texts by their length."""

import pytest

from paddle_tfm.text_lengths import buckets, equal_edges, lengths


@pytest.mark.parametrize(
    ("sizes", "edges", "expected"),
    [
        ([1, 5, 6, 10, 11, 0], [5, 10], {"≤ 5": [0, 1, 5], "6–10": [2, 3], "> 10": [4]}),
        ([4, 5], [3, 4], {"≤ 3": [], "4": [0], "> 4": [1]}),
        ([7], [], {"all": [0]}),
        ([2, 2, 2], [], {"all": [0, 1, 2]}),
        ([1, 2, 3, 4, 5, 6, 7, 8], [], {"≤ 2": [0, 1], "3–4": [2, 3], "5–6": [4, 5], "> 6": [6, 7]}),
        ([1, 1, 1, 1, 1, 9], [], {"≤ 1": [0, 1, 2, 3, 4], "> 1": [5]}),
    ],
)
def test_buckets(sizes, edges, expected):
    assert buckets(sizes, edges or equal_edges(sizes, 4)) == expected


def test_lengths_are_in_words_where_there_are_words():
    assert lengths(["a b  c", "d"]) == ("words", [3, 1])
    assert lengths(["两个人。", "我是 Anna", "你好"]) == ("characters", [4, 6, 2])
    assert lengths(["pomme", "x y z", "b"]) == ("characters", [5, 3, 1])
