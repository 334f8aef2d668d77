"""What a checkpoint says of a training's progress, read again."""

import json
from dataclasses import asdict

import pytest

from paddle_tfm.errors import UserError
from paddle_tfm.train.progress import Progress

PROGRESS = Progress(
    step=12, epoch=1, position=3, tokens=900, seconds=1.5, best=[-0.5], valid={"loss": 0.5}, snapshots=[8]
)


def test_it_is_as_it_was_saved(tmp_path):
    state = json.loads(json.dumps(asdict(PROGRESS)))
    assert Progress.restored(state, tmp_path / "state.json", steps=12) == PROGRESS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("tokens", "x"), ("seconds", None), ("seconds", float("inf")), ("position", "x"), ("epoch", -1)],
        *[("best", {}), ("valid", 3), ("evaluated", "yes"), ("skipped", True), ("step", 10**17), ("step", 13)],
        *[("epoch", 2**63), ("seconds", -1.0), ("wall_seconds", 1e200), ("rate_factor", 0.0), ("rate_factor", 1.5)],
    ],
)
def test_what_cannot_be_is_damage(tmp_path, name, value):
    file = tmp_path / "state.json"
    with pytest.raises(UserError, match=f"^{file}: damaged: .*{name}"):
        Progress.restored({**asdict(PROGRESS), name: value}, file, steps=12)
