"""Sweeps trained by commands: the events, the numbers and the ends of sweeps that are trained here."""

import pytest
from small_sweeps import PLUGIN, TINY, VARIANTS, logs, run

from paddle_tfm import create_registry, load_recipe
from paddle_tfm.protocols import Executor, Outcome
from paddle_tfm.sweep.sweep import RunsFailed, Sweep

pytestmark = pytest.mark.reliability

COMMAND = "--executor={name: command, template: \"bash -c '{cell}'\", at_once: 2}"


def lines(err):
    """What is reported of runs, without their order."""
    said = [line for line in err.splitlines() if ": test: " not in line]  # of outputs: who trains a run says it
    return sorted(line.partition(" ")[2] if line[1:2] == "/" else line for line in said)


def test_trained_by_commands_it_is_the_same_sweep(tmp_path):
    """With a plugin file and paths with spaces, through a second shell."""
    plugin = tmp_path / "a plugin.py"
    plugin.write_text(PLUGIN)
    arguments = [VARIANTS, "model.norm=halved", "--plugin", plugin]
    code, _, here = run(*arguments, "--workers", 1, "--out", tmp_path / "trained here")
    assert code == 0, here
    code, out, err = run(*arguments, COMMAND, "--out", tmp_path / "by commands")
    assert code == 0, err
    assert "In what post differs from pre" in out
    assert lines(err) == lines(here) and len(lines(err)) == 6
    assert logs(tmp_path / "by commands") == logs(tmp_path / "trained here") != {}


# What docs/cluster.md shows with ssh and rsync: the folder goes to a machine that does not share it, and comes back.
COPIED = """
node=$1
mkdir -p "$node" && cp -ru *.yaml runs "$node"
(cd "$node" && sh -c "$2"); status=$?
cp -ru "$node/runs" .
exit $status
"""


def test_a_machine_that_shares_no_folder_refuses_its_run_until_the_template_copies_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("base: base\n")
    (tmp_path / "copied.sh").write_text(COPIED)
    (tmp_path / "bare").mkdir()

    def sweep(template, *more):
        executor = f'--executor={{name: command, template: "{template}", at_once: 2}}'
        return run(executor, "--out=runs/mine", *more, recipe="mine.yaml")

    code, _, err = sweep("cp mine.yaml bare && cd bare && {cell}")
    assert code == 1 and "1 of 1 runs failed: default/seed-1" in err
    assert "Error: runs/mine is not there on " in err and "`template` of the executor `command` copy it" in err
    code, _, err = sweep("sh copied.sh $(mktemp -d -p .) '{cell}'", "--resume")
    assert code == 0, err
    assert run("--workers=1", "--out=here", recipe="mine.yaml")[0] == 0
    assert logs(tmp_path / "runs/mine") == logs(tmp_path / "here") != {}


# ------------------------------------------------------------------------------- what the sweep makes of an executor


class Says(Executor):
    """It trains the runs named, and says of each what it is asked to say."""

    def __init__(self, trained, outcomes):
        self.trained, self.outcomes = trained, outcomes

    def run(self, cells, supervisor):
        by_name = {cell.name: cell for cell in cells}
        for _ in supervisor.train([by_name[name] for name in self.trained]):
            pass
        for name, failure in self.outcomes:
            yield Outcome(by_name[name], failure)


@pytest.mark.parametrize(
    "trained, outcomes, reported, error",
    [
        (["pre", "post"], [("pre", ""), ("post", "")], [], ""),
        (["pre", "post"], [], [], ""),  # results are enough
        (["pre"], [("pre", "")], [], "1 of 2 runs failed: post/seed-1 (never trained)"),
        (
            ["pre"],
            [("pre", ""), ("post", "")],
            ["post/seed-1 failed: it is said to be finished, but has no results"],
            "1 of 2 runs failed: post/seed-1",
        ),
        (["pre"], [("post", "no node")], ["post/seed-1 failed: no node"], "1 of 2 runs failed: post/seed-1"),
    ],
)
def test_only_results_make_a_run_finished(trained, outcomes, reported, error, tmp_path):
    registry, sentences = create_registry(), []
    executor = Says([f"{name}/seed-1" for name in trained], [(f"{name}/seed-1", text) for name, text in outcomes])
    sweep = Sweep(
        load_recipe("base", [*TINY, "train.steps=2", "evaluate.every=2", VARIANTS]),
        registry, tmp_path, report=sentences.append, executor=executor,
    )  # fmt: skip
    if error:
        with pytest.raises(RunsFailed) as raised:
            sweep.run()
        assert str(raised.value) == error
    else:
        assert [folder.parent.name for folder in sweep.run()] == ["pre", "post"]
    assert [sentence for sentence in sentences if ": test: " not in sentence] == reported


def test_what_a_killed_process_left_of_a_finished_run_is_removed(tmp_path):
    """One that is killed after it wrote the results and before it took away what a finished run does not need."""

    def sweep():
        recipe = load_recipe("base", [*TINY, "train.steps=2", "evaluate.every=2"])
        return Sweep(recipe, create_registry(), tmp_path, resume=True)

    (run,) = sweep().run()
    before = {path.relative_to(run): path.read_bytes() for path in run.rglob("*") if path.is_file()}
    (run / "claim.json").write_text('{"host": "here", "pid": 1, "since": "then"}')
    (run / "about.json.partial").write_text("{")
    for folder in ("last.old", "step-2", "best.partial"):
        (run / "checkpoints" / folder).mkdir()
        (run / "checkpoints" / folder / "state.json").write_text("{}")
    assert sweep().run() == [run]
    assert {path.relative_to(run): path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["best", "last"]
