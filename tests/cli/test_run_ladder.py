"""`paddle-tfm run` of a ladder: whole, in parts, watched and compared; and what is refused before anything is trained."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import call, write_recipe

pytestmark = pytest.mark.reliability

RECIPE = """
base: tiny.yaml
name: mine
baseline: layer
variants: {layer: {}, rms: {model.norm: rms}}
ladder:
  sizes:
    s: {model.d_model: 8}
    m: {model: {d_ff: 32}}
    l: {model: {d_ff: 96}}
seeds: [1, 2]
train: {schedule: {name: constant, learning_rate: 0.01}}
evaluate: {best: loss}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ladder")
    write_recipe(folder, RECIPE, "reverse", "task.min_length=2")
    return folder


@pytest.fixture(scope="module")
def trained(folder):
    done = call("run", folder / "mine.yaml", "--workers=1", f"--out={folder / 'one'}")
    assert done.status == 0, done.err
    return done


def section(out):
    return json.loads(Path(out, "comparison.json").read_text("utf-8"))["sections"]["ladder"]


def test_every_variant_is_trained_at_every_size_and_compared_there(folder, trained):
    out = folder / "one"
    runs = sorted(path.parent.relative_to(out).as_posix() for path in out.rglob("results.json"))
    assert runs == sorted(f"{v}@{size}/seed-{seed}" for v in ("layer", "rms") for size in "sml" for seed in (1, 2))
    said = section(out)
    results = {
        path.parent.relative_to(out).as_posix(): json.loads(path.read_text("utf-8"))
        for path in out.rglob("results.json")
    }
    for row in said["sizes"]:
        values = [
            results[f"rms@{row['size']}/seed-{seed}"]["test"]["loss"]
            - results[f"layer@{row['size']}/seed-{seed}"]["test"]["loss"]
            for seed in (1, 2)
        ]
        base = [results[f"layer@{row['size']}/seed-{seed}"] for seed in (1, 2)]
        assert row["difference"] == pytest.approx(np.mean(values))
        assert row["flops"] == 6 * base[0]["matrix_parameters"] * np.mean([run["tokens"] for run in base])
    assert [row["size"] for row in said["sizes"]] == ["s", "m", "l"]
    assert "By size, tested from size s to l" in trained.out and "“rms”: " in trained.out
    assert "4 runs at the largest size; 8 at smaller ones" in trained.out


def test_parts_resumed_and_run_by_others_are_the_same(folder, trained):
    two = folder / "two"
    for cell in ("rms@l/seed-2", "layer@s/seed-1"):
        assert call("run", folder / "mine.yaml", f"--out={two}", "--resume", f"--cell={cell}").status == 0
    shutil.copytree(folder / "one/rms@m", two / "rms@m")
    done = call("run", folder / "mine.yaml", f"--out={two}", "--resume", "--executor=local", "--workers=1")
    assert done.status == 0, done.err
    assert section(two)["lines"] == section(folder / "one")["lines"]
    compared = call("compare", two, f"--out={folder / 'three'}", "--baseline=layer")
    assert compared.status == 0 and section(folder / "three") == section(two)
    other = call("compare", two, f"--out={folder / 'four'}", "--baseline=rms")
    assert other.status == 0
    assert section(folder / "four")["lines"][0]["slope"] == pytest.approx(-section(two)["lines"][0]["slope"])
    watched = call("ls", "runs", two)
    assert "“layer@l”" in watched.out or "“rms@l”" in watched.out, watched


def test_sizes_that_cost_less_than_the_one_before_are_refused(folder):
    text = RECIPE.replace("d_ff: 96", "d_ff: 4")
    (folder / "bad.yaml").write_text(text, "utf-8")
    for verb in ("run", "check"):
        done = call(verb, folder / "bad.yaml", *([f"--out={folder / 'bad'}"] if verb == "run" else []))
        assert done.status == 2 and not (folder / "bad").exists()
        sentence = "line 10  ladder.sizes.l  sizes go from small to large, but 'layer' costs "
        assert sentence in done.err and "at the size before, 'm'" in done.err
    assert call("check", folder / "mine.yaml").out.startswith(
        f"{folder / 'mine.yaml'} is sound: 2 variants × 3 sizes × 2 seeds"
    )
    assert "At 3 sizes: s, m, l" in (described := call("run", folder / "mine.yaml", "--help").out)
    assert "Runs: 12 (2 seeds a variant at each size)" in described
