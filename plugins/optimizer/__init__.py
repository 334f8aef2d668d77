"""The optimizer variants that ship with paddle_tfm."""

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def register_optimizers():
    return {
        "adam": "paddle_tfm_plugins.optimizer.adam:Adam",
        "adamw": "paddle_tfm_plugins.optimizer.adamw:AdamW",
        "adafactor": "paddle_tfm_plugins.optimizer.adafactor:Adafactor",
        "lion": "paddle_tfm_plugins.optimizer.lion:Lion",
        "radam": "paddle_tfm_plugins.optimizer.radam:RAdam",
        "muon": "paddle_tfm_plugins.optimizer.muon:Muon",
        "normuon": "paddle_tfm_plugins.optimizer.normuon:NorMuon",
        "cautious_adamw": "paddle_tfm_plugins.optimizer.cautious_adamw:CautiousAdamW",
        "sgd": "paddle_tfm_plugins.optimizer.sgd:SGD",
        "soap": "paddle_tfm_plugins.optimizer.soap:SOAP",
        "schedule_free": "paddle_tfm_plugins.optimizer.schedule_free:ScheduleFree",
    }
