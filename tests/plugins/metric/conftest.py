"""Texts that metrics are tested with."""

import gzip
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def flickr():
    """References of Multi30k's test set of 2016."""
    folder = os.environ.get("PADDLE_TFM_DATA")
    if not folder:
        pytest.skip("PADDLE_TFM_DATA is not set")
    path = Path(folder) / "multi30k" / "test_2016_flickr.de.gz"
    return gzip.decompress(path.read_bytes()).decode("utf-8").removesuffix("\n").split("\n")
