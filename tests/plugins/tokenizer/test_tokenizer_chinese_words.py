"""chinese_words: the words are jieba's, and no space is left between them."""

import pytest

from paddle_tfm import UserError
from paddle_tfm_plugins.tokenizer.chinese_words import ChineseWords
from paddle_tfm_plugins.tokenizer.sentencepiece import SentencePiece

TEXT = "我们昨天在北京见面，GPT-4 and e\u0301 很好用。他买了3.5斤苹果！"


@pytest.fixture(scope="module")
def jieba():
    return pytest.importorskip("jieba", reason="the optional package jieba is not installed")


def test_words_are_those_of_jieba_and_come_back(jieba):
    tokenizer = ChineseWords()
    pieces = tokenizer.tokenize(TEXT)
    ours = [word for piece in pieces if (word := piece.removeprefix("▁")) and "\u4e00" <= word[0] <= "\u9fff"]
    assert ours == [word for word in jieba.lcut(TEXT) if "\u4e00" <= word[0] <= "\u9fff"]
    assert pieces[:4] == ["▁我们", "▁昨天", "▁在", "▁北京"]
    normal = "我们昨天在北京见面，GPT-4 and e\u0301很好用。他买了3.5斤苹果！"  # a space beside Chinese is dropped
    assert tokenizer.detokenize(pieces) == tokenizer.joined(TEXT) == tokenizer.normalize(TEXT) == normal


def test_texts_that_come_cut_are_joined(jieba):
    cut = "我们 昨天 在 北京 见面 ， GPT-4 and e\u0301 很 好 用 。"
    tokenizer = ChineseWords(segmenter="spaces")
    assert tokenizer.tokenize(cut)[:5] == ["▁我们", "▁昨天", "▁在", "▁北京", "▁见面"]
    assert tokenizer.detokenize(tokenizer.tokenize(cut)) == "我们昨天在北京见面，GPT-4 and e\u0301很好用。"
    assert tokenizer.joined("Two words , and 两 个 。") == "Two words , and两个。"


@pytest.mark.reliability
def test_words_of_ones_own_and_subwords_are_kept_by_the_run(jieba, tmp_path):
    dictionary = tmp_path / "words.txt"
    dictionary.write_text("京见面 90000 n\n云计算\n", encoding="utf-8")
    options = {"dictionary": str(dictionary)}
    trained = ChineseWords(**options, subwords=SentencePiece())
    trained.fit([TEXT] * 3)
    trained.save(tmp_path)
    dictionary.unlink()
    loaded = ChineseWords(**options, subwords=SentencePiece())
    loaded.load(tmp_path)
    assert loaded.tokenize(TEXT) == trained.tokenize(TEXT) and loaded.pieces() == trained.pieces()
    assert loaded.detokenize(loaded.tokenize(TEXT)) == trained.joined(TEXT)
    whole = ChineseWords(**options)
    whole.load(tmp_path)
    assert "▁京见面" in whole.tokenize(TEXT)
    with pytest.raises(UserError, match=r"words\.txt: no such file"):
        whole.read_head()
    for content, sentence in ((b"a\tb\n", "line 1: must hold a word"), (b"\xff\xfe", "utf-8")):
        dictionary.write_bytes(content)
        with pytest.raises(UserError, match=f"words\\.txt: cannot be read: .*{sentence}"):
            whole.fit([])
