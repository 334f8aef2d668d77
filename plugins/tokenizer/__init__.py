"""The tokenizer variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_tokenizers():
    return {
        "char": "paddle_tfm_plugins.tokenizer.char:Char",
        "word": "paddle_tfm_plugins.tokenizer.word:Word",
        "mixed": "paddle_tfm_plugins.tokenizer.mixed:Mixed",
        "space": "paddle_tfm_plugins.tokenizer.space:Space",
        "chinese_words": "paddle_tfm_plugins.tokenizer.chinese_words:ChineseWords",
        "sentencepiece": "paddle_tfm_plugins.tokenizer.sentencepiece:SentencePiece",
        "sentencepiece_file": "paddle_tfm_plugins.tokenizer.sentencepiece_file:SentencePieceFile",
        "subword_nmt": "paddle_tfm_plugins.tokenizer.subword_nmt:SubwordNmt",
        "hugging_face": "paddle_tfm_plugins.tokenizer.hugging_face:HuggingFace",
    }
