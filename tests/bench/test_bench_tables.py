"""What stands above a table of bench."""

import pytest

from paddle_tfm.cli.bench_tables import facts

SIZES = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "source_vocabulary": 492,
    "target_vocabulary": 157,
    "max_tokens": 1024,
}


@pytest.mark.parametrize("task", ["dates", {"name": "dates", "train": 100}])
def test_a_task_may_be_a_name_or_a_mapping(task):
    line = facts({"task": task, "sizes": {**SIZES, "dropout": 0.1}})
    assert line.startswith("One training step of dates: d_model 64, 2+2 layers, vocabularies 492 and 157")
