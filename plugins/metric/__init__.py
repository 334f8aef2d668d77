"""The metric variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_metrics():
    return {
        "exact_match": "paddle_tfm_plugins.metric.exact_match:ExactMatch",
        "token_accuracy": "paddle_tfm_plugins.metric.token_accuracy:TokenAccuracy",
        "token_error_rate": "paddle_tfm_plugins.metric.token_error_rate:TokenErrorRate",
        "word_error_rate": "paddle_tfm_plugins.metric.word_error_rate:WordErrorRate",
        "phoneme_error_rate": "paddle_tfm_plugins.metric.phoneme_error_rate:PhonemeErrorRate",
        "bits_per_character": "paddle_tfm_plugins.metric.bits_per_character:BitsPerCharacter",
        "perplexity": "paddle_tfm_plugins.metric.perplexity:Perplexity",
        "bleu": "paddle_tfm_plugins.metric.bleu:Bleu",
        "moses_bleu": "paddle_tfm_plugins.metric.moses_bleu:MosesBleu",
        "chrf": "paddle_tfm_plugins.metric.chrf:Chrf",
        "ter": "paddle_tfm_plugins.metric.ter:Ter",
    }
