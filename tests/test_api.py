"""From Python: what `run` and `compare` return, in a script and in a notebook."""

import base64
import re

import pytest

import paddle_tfm
from paddle_tfm import UserError
from paddle_tfm.cli import main

TINY = ["task.train=100", "task.valid=10", "task.test=10", "model.d_model=16", "train.steps=4", "evaluate.every=4"]


def test_runs_are_compared_as_on_the_command_line_and_show_themselves(tmp_path, capsys):
    runs = paddle_tfm.run("copy", [*TINY, "model.norm=layer,rms"], out=tmp_path / "norms", progress=False)
    assert runs == [tmp_path / f"norms/{norm}/seed-1" for norm in ("layer", "rms")]
    compared = paddle_tfm.compare(runs)
    assert compared.page == tmp_path / "norms/comparison.html" and compared.page.is_file()
    *table, verdict = str(compared).splitlines()
    assert {line.split()[0] for line in table} >= {"variant", "layer", "rms"} and max(map(len, table)) <= 120
    with pytest.raises(SystemExit):
        main(["compare", str(tmp_path / "norms")])
    assert verdict == compared.verdict and verdict in capsys.readouterr().out
    for shown in (runs._repr_html_(), compared._repr_html_()):
        assert 'data-label="verdict"' in shown and compared.verdict.partition("“")[0] in shown
        (picture,) = re.findall(r'src="data:image/png;base64,([^"]+)"', shown)
        assert base64.b64decode(picture) == compared.figure.read_bytes()


def test_nothing_to_compare_is_said(tmp_path):
    with pytest.raises(UserError, match="names no run"):
        paddle_tfm.compare([])
    with pytest.raises(UserError, match="no finished run"):
        paddle_tfm.compare([tmp_path])
