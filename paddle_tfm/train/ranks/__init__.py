"""Several processes that train a run together: rank 0, which has optimizer, texts and checkpoints, and the others."""
