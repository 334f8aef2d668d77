"""English sentences about people in, Chinese ones out, with the names copied."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paddle_tfm.protocols import Example, Task
from paddle_tfm.randomness import generator
from paddle_tfm.validators import positive
from paddle_tfm_plugins.task._invented_names import person

# {a} and {b} are people, other fields are words of `WORDS`. Chinese is written with spaces between its words, so that
# the tokenizer `word` cuts both sides in the same way: a piece can be copied only if it is the same on both.
TEMPLATES = (
    ("{a} met {b} at {place} {past}.", "{a} {past} 在 {place} 遇见 了 {b}。"),
    ("{past} {a} gave {b} {thing}.", "{past} {a} 给 了 {b} {thing}。"),
    ("{a} received {thing} from {b}.", "{a} 从 {b} 那里 收到 了 {thing}。"),
    ("{thing} from {a} arrived for {b} {past}.", "{b} {past} 收到 了 {a} 寄来 的 {thing}。"),
    ("{a} will call {b} {future}.", "{a} {future} 要 给 {b} 打电话。"),
    ("{future} {a} will wait for {b} at {place}.", "{future} {a} 会 在 {place} 等 {b}。"),
    ("does {a} know {b}?", "{a} 认识 {b} 吗？"),
    ("{a} is {role} of {b}.", "{a} 是 {b} 的 {role}。"),
    ("{a} is {more} than {b}.", "{a} 比 {b} {more}。"),
    ("{a} says that {b} lives near {place}.", "{a} 说 {b} 住 在 {place} 附近。"),
    ("who told {a} that {b} was at {place}?", "谁 告诉 {a} 说 {b} 在 {place}？"),
    ("without {a}, {b} would not have found {place}.", "没有 {a}， {b} 就 找不到 {place}。"),
)
WORDS = {
    "past": (("yesterday", "昨天"), ("this morning", "今天早上"), ("last week", "上周"), ("last year", "去年")),
    "future": (("tomorrow", "明天"), ("tonight", "今晚"), ("next week", "下周"), ("next year", "明年")),
    "place": (
        *(("the station", "车站"), ("the library", "图书馆"), ("the airport", "机场"), ("the museum", "博物馆")),
        *(("the park", "公园"), ("the hotel", "酒店"), ("the market", "市场"), ("the school", "学校")),
    ),
    "thing": (
        *(("a book", "一本书"), ("a letter", "一封信"), ("a present", "一份礼物"), ("a ticket", "一张票")),
        *(("a parcel", "一个包裹"), ("a postcard", "一张明信片")),
    ),
    "role": (
        *(("the teacher", "老师"), ("the doctor", "医生"), ("the neighbour", "邻居"), ("the boss", "老板")),
        *(("a friend", "朋友"), ("a colleague", "同事")),
    ),
    "more": (("taller", "高"), ("younger", "年轻"), ("faster", "快"), ("busier", "忙")),
}
FIELD = re.compile(r"{(\w+)}")


class Names(Task):
    """Our own English sentences about two people to Chinese, names copied: what a closed vocabulary cannot do.

    "Yesterday Brudola gave Tina Vorun a letter." becomes "昨天 Brudola 给 了 Tina Vorun 一封信。" Twelve sentences,
    with some words exchanged in each, are all there is to translate. Names of two or three syllables, one or two a
    person, are drawn out of five million, so that hardly any comes twice.

    Splits share no name: each belongs to test, valid or train (10%, 10%, 80%) by a hash of it and `data_seed`. A longer
    split begins with the shorter one.
    """

    def __init__(self, train: int = 10_000, valid: int = 500, test: int = 500, data_seed: int = 1):
        positive(train=train, valid=valid, test=test)
        self.sizes = {"train": train, "valid": valid, "test": test}
        self.data_seed = data_seed

    def examples(self, split: str) -> Iterator[Example]:
        rng = generator(self.data_seed, "names", split)
        for _ in range(self.sizes[split]):
            english, chinese = TEMPLATES[rng.integers(len(TEMPLATES))]
            people = {field: person(rng, split, self.data_seed) for field in "ab"}
            source_words, target_words = dict(people), dict(people)
            for field in FIELD.findall(english):
                if field in WORDS:
                    source_words[field], target_words[field] = WORDS[field][rng.integers(len(WORDS[field]))]
            source = english.format(**source_words)
            yield Example(source[0].upper() + source[1:], chinese.format(**target_words))
