"""`paddle-tfm run` whose folder is removed or moved away while it trains."""

from pathlib import Path

import pytest
from command_line import TINY, call

from paddle_tfm.sweep.claim import FILE

REPLACE = """
import os, shutil
from paddle_tfm import hookimpl

@hookimpl
def {event}(run, step):
    if step == {step} and not os.path.exists("old"):
        shutil.move("out", "old")
        if {again}:
            shutil.copytree("old", "out", dirs_exist_ok=True)
"""


@pytest.mark.reliability
@pytest.mark.parametrize("again", [False, True], ids=["moved", "replaced"])
@pytest.mark.parametrize("event, step", [("on_step_end", 3), ("on_evaluation_end", 4), ("on_evaluation_end", 8)])
def test_a_training_whose_folder_is_gone_writes_nothing_where_another_may_be(event, step, again, tmp_path, monkeypatch):
    """Another one was begun there, say: neither its files nor its claim are touched. (VisualDL has a thread that may
    write a file of another name.)"""
    monkeypatch.chdir(tmp_path)
    Path("replace.py").write_text(REPLACE.format(event=event, step=step, again=again), "utf-8")
    done = call(
        "run", "reverse", *TINY, "train.steps=8", "evaluate.every=4", "--plugin=replace.py", "--out=out", "--workers=1"
    )
    assert done.status == 2, done.out + done.err
    assert "Error: out/default/seed-1 was removed or moved while it was being trained" in done.err
    if again:
        files = [path for path in Path("old").rglob("*") if path.is_file() and path.parent.name != "vdl"]
        assert Path("old/default/seed-1") / FILE in files
        for path in files:
            assert (Path("out") / path.relative_to("old")).read_bytes() == path.read_bytes(), path
    else:
        assert not [path for path in Path("out").rglob("*.*") if path.parent.name != "vdl"]
