"""The datasets that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_datasets():
    return {
        "multi30k": "paddle_tfm_plugins.dataset.multi30k:Multi30k",
        "tatoeba-en-zh": "paddle_tfm_plugins.dataset.tatoeba_en_zh:TatoebaEnZh",
        "scan": "paddle_tfm_plugins.dataset.scan:Scan",
        "sigmorphon2020-g2p": "paddle_tfm_plugins.dataset.sigmorphon2020_g2p:Sigmorphon2020G2P",
    }
