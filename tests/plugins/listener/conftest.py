from small_runs import make_run, make_trainer, registry, train_in_parts  # noqa: F401
