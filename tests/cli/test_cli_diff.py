"""`paddle-tfm diff`: of runs and of recipes."""

import json
import re

import pytest
from command_line import TINY, call


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_variants_of_a_recipe_with_their_defaults():
    done = call("diff", "reverse", *TINY, "model.norm=layer,rms,layer_std", "layer", "rms", "--json")
    assert done.status == 0, done.err
    (pair,) = json.loads(done.out)
    assert (pair["one"], pair["other"]) == ("layer", "rms")
    (norm,) = pair["differences"]
    assert (
        norm["what"] == "model.norm" and norm["one"].startswith("layer (eps ") and norm["other"].startswith("rms (eps ")
    )
    (cost,) = pair["confounds"]
    assert cost["one"] - cost["other"] == 7 * 16  # a bias for each of the norms: 2 + 3 in the layers, 2 at the ends
    assert re.fullmatch(r"\d\.\d% fewer parameters than layer(: a difference .*)?", cost["sentence"])
    assert [pair["other"] for pair in json.loads(call("diff", "compare-norms", "--json").out)] == [
        "layer-std", "rms", "batch", "none",
    ]  # fmt: skip


def test_a_run_beside_itself_and_what_is_no_pair(trained):
    done = call("diff", trained.folder, trained.out)
    assert done.status == 0 and "nothing differs" in done.out
    about = json.loads((trained.folder / "about.json").read_text("utf-8"))
    # Weights, gradients and two moments of Adam at least; nothing of Paddle's own half a gigabyte.
    assert 4 * 4 * about["parameters"] / 2**20 < about["trainings"][0]["peak_memory_mib"] < 50


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (
            ["reverse"],
            "reverse.yaml has one variant, 'default'; give RUN RUN, a folder of runs, or RECIPE [VARIANT]...",
        ),
        (["compare-norms", "layr"], "compare-norms.yaml: unknown variant 'layr'; did you mean 'layer'?"),
        (["compare-norms", "layer"], "'layer' is the baseline itself; name another variant"),
        (["compare-nroms"], "unknown recipe 'compare-nroms'; did you mean 'compare-norms'?"),
        (["."], ".: no run is here"),
        ([".", "runs/none"], "runs/none: is no folder"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(what, sentence):
    done = call("diff", *what)
    assert done.status == 2 and sentence in done.err and "Traceback" not in done.err
