"""`paddle-tfm run` with equal budgets: what is solved is what runs record, a resumed sweep has the same."""

import json
import re
from shutil import rmtree

import pytest
from command_line import call, write_recipe

from paddle_tfm import build_model
from paddle_tfm.cli.plugin.new import write
from paddle_tfm.recipe import yaml_lines

pytestmark = pytest.mark.reliability

RECIPE = """
base: tiny.yaml
name: mine
baseline: plain
variants:
  plain: {}
  gated: {model.feed_forward: swiglu}
  deep: {model.encoder_layers: 3}
  mixed: {train.batches: mixed}
model: {d_ff: 48}
train: {steps: 12, schedule: {name: constant, learning_rate: 0.01}}
evaluate: {every: 12, best: loss}
seeds: [1, 2]
"""
NAMES = ("plain", "gated", "deep", "mixed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("equal")
    write_recipe(folder, RECIPE, "reverse", "task.min_length=2")
    return folder


def results(out, seed=1):
    return {name: json.loads((out / f"{name}/seed-{seed}/results.json").read_text("utf-8")) for name in NAMES}


def solved(out):
    return json.loads((out / "equal.json").read_text("utf-8"))


def test_equal_tokens_are_those_that_runs_record_to_the_nearest_step(folder):
    out = folder / "tokens"
    done = call("run", folder / "mine.yaml", "equal=tokens", "--seeds=1", "--workers=1", f"--out={out}")
    assert done.status == 0, done.err
    runs, said = results(out), solved(out)
    assert runs["gated"]["steps"] == runs["deep"]["steps"] == 12 and runs["mixed"]["steps"] > 12
    for name in NAMES[1:]:
        assert (said[name]["wanted"], said[name]["reached"]) == (runs["plain"]["tokens"], runs[name]["tokens"])
    a_step = runs["mixed"]["tokens"] / runs["mixed"]["steps"]
    assert abs(runs["mixed"]["tokens"] - runs["plain"]["tokens"]) < a_step
    assert yaml_lines.load_file(out / "mixed/seed-1/recipe.yaml")[0]["train"]["steps"] == runs["mixed"]["steps"]
    assert f"mixed is trained with train.steps={runs['mixed']['steps']} instead of 12" in " ".join(done.out.split())
    assert "Equal budgets" in (out / "comparison.html").read_text("utf-8")


def test_what_was_solved_for_other_code_is_solved_again(tmp_path, monkeypatch):
    """Of a plugin that was edited before its first run: the sizes that were recorded are those of its old code."""
    monkeypatch.chdir(tmp_path)
    write("my-ff", "feed_forward", single_file=True)
    write_recipe(tmp_path, RECIPE.replace("swiglu", "my_ff"), "reverse", "task.min_length=2")
    command = ["run", "mine.yaml", "equal=parameters", "--plugin=my_ff.py", "--resume", "--out=out", "--cell"]
    assert call(*command, "plain/seed-1").status == 0
    before, file = solved(tmp_path / "out"), tmp_path / "my_ff.py"
    code = file.read_text("utf-8")
    more = code.replace(
        "        self.inner_norm = ", "        self.more = Linear(d_model, 50)\n        self.inner_norm = "
    )
    assert more != code
    file.write_text(more, "utf-8")
    assert call(*command, "gated/seed-1").status == 0
    after = solved(tmp_path / "out")
    assert after["gated"]["value"] < before["gated"]["value"] and after["deep"]["value"] == before["deep"]["value"]
    run = json.loads((tmp_path / "out/gated/seed-1/results.json").read_text("utf-8"))
    assert run["parameters"] == after["gated"]["reached"]


def test_equal_operations_leave_a_larger_model_fewer_steps_and_resuming_changes_nothing(folder):
    one, two = folder / "flops", folder / "flops-again"
    assert call("run", folder / "mine.yaml", "equal=flops", "--seeds=1", "--workers=1", f"--out={one}").status == 0
    runs = results(one)
    wanted = 6 * runs["plain"]["matrix_parameters"] * runs["plain"]["tokens"]
    for name in NAMES[1:]:
        each = 6 * runs[name]["matrix_parameters"]
        assert solved(one)[name]["reached"] == each * runs[name]["tokens"]
        assert abs(each * runs[name]["tokens"] - wanted) <= each * 128  # of a step, at most
    assert runs["deep"]["steps"] < runs["gated"]["steps"] < 12
    command = ["run", folder / "mine.yaml", "equal=flops", "--seeds=1", f"--out={two}", "--resume"]
    for cell in ("deep/seed-1", "plain/seed-1"):
        assert call(*command, f"--cell={cell}").status == 0
    done = call(*command, "--workers=1")
    assert done.status == 0, done.err
    assert solved(two) == solved(one) and {n: r["test"] for n, r in results(two).items()} == {
        n: r["test"] for n, r in runs.items()
    }
    assert "“plain”" in call("compare", two, f"--out={folder / 'elsewhere'}").out


def test_equal_parameters_give_a_gated_layer_two_thirds_of_the_width(folder):
    out = folder / "parameters"
    done = call("run", folder / "mine.yaml", "equal=parameters", "--seeds=1", "--workers=1", f"--out={out}")
    assert done.status == 0, done.err
    said, runs = solved(out), results(out)
    assert said["gated"]["value"] == 32 and said["mixed"]["value"] == 48 and 1 < said["deep"]["value"] < 48
    assert {name: each["reached"] for name, each in said.items()} == {n: runs[n]["parameters"] for n in NAMES[1:]}
    wanted = runs["plain"]["parameters"]
    recipe = str(out / "deep/seed-1/recipe.yaml")
    for beside in (-1, 1):
        model = build_model(
            recipe, [f"model.d_ff={said['deep']['value'] + beside}"], source_vocabulary=14, target_vocabulary=14
        )
        count = sum(int(each.size) for each in model.parameters())
        assert abs(count - wanted) >= abs(runs["deep"]["parameters"] - wanted)
    forecast = call("run", folder / "mine.yaml", "equal=parameters", "--seeds=1", "--dry-run", "--json")
    probed = {row["variant"]: row["parameters"] for row in json.loads(forecast.out)["variants"]}
    assert probed == {name: run["parameters"] for name, run in runs.items()}
    # A recipe that changed is solved again; runs of it are not resumed.
    changed = call(
        "run", folder / "mine.yaml", "equal=parameters", "--seeds=1", "model.d_ff=60", f"--out={out}", "--resume"
    )
    assert changed.status == 2 and "recipe changed" in changed.err


def test_equal_seconds_are_measured_once_and_kept(folder):
    out = folder / "seconds"
    arguments = ("run", folder / "mine.yaml", "equal=seconds", "--seeds=1", f"--out={out}", "--resume")
    done = call(*arguments, "--cell=plain/seed-1")
    assert done.status == 0 and "another machine, or a busier one" in " ".join(done.err.split())
    said = solved(out)
    said["deep"]["value"] = 3  # as if it had been measured so
    (out / "equal.json").write_text(json.dumps(said), "utf-8")
    assert call(*arguments, "--cell=deep/seed-1").status == 0
    assert json.loads((out / "deep/seed-1/results.json").read_text("utf-8"))["steps"] == 3 and solved(out) == said


def test_other_texts_are_solved_for_again(tmp_path):
    """A budget of tokens depends on what the sentences hold: a solution of earlier ones is not kept."""
    write_recipe(tmp_path, RECIPE, "reverse", "task.min_length=2")
    texts = tmp_path / "texts.tsv"
    task = f"task={{name: parallel, train: {texts}, valid: {texts}, test: {texts}}}"
    arguments = ("run", tmp_path / "mine.yaml", "equal=tokens", task, "--seeds=1", f"--out={tmp_path / 'out'}")
    said = []
    for longest in (5, 9):
        lines = [" ".join("abcdefghi"[: 2 + number % longest]) for number in range(60)]
        texts.write_text("".join(f"{line}\t{line}\n" for line in lines), "utf-8")
        done = call(*arguments, "--resume", "--cell=plain/seed-1")
        assert done.status == 0, done.err
        said.append(solved(tmp_path / "out")["mixed"]["wanted"])
        rmtree(tmp_path / "out/plain")
    assert said[0] < said[1]


def test_a_budget_that_cannot_be_met_is_refused_before_anything_is_trained(folder):
    text = RECIPE.replace("encoder_layers: 3}", "encoder_layers: 20}") + "equal: parameters\n"
    (folder / "bad.yaml").write_text(text, "utf-8")
    done = call("run", folder / "bad.yaml", "--seeds=1", f"--out={folder / 'bad'}")
    assert done.status == 2 and not list((folder / "bad").rglob("identity.json"))
    line = text.splitlines().index("equal: parameters") + 1
    assert re.search(
        rf"line {line}  equal  model.d_ff cannot be solved for 'deep': at 1 it has [\d,]+ parameters", done.err
    )
    checked = call("check", folder / "mine.yaml", "equal=flops")
    assert "equal flops: train.steps of each variant but the baseline is solved when" in " ".join(checked.out.split())
