"""Tables of the command line as a user's terminal, a pipe and a program get them."""

import json
import re

import pytest
from command_line import call, in_terminal

WIDTH = 60  # tables of any width: tests/test_tabular.py


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture(scope="module")
def two_variants(trained, tmp_path_factory):
    """Two variants under two seeds: a real run copied, with other names and scores."""
    folder = tmp_path_factory.mktemp("compared") / "runs"
    results = json.loads((trained.folder / "results.json").read_text())
    for variant, shift in (("pre-layer", 0.0), ("post-batch-with-a-name", 0.25)):
        for seed in (1, 2):
            run = folder / variant / f"seed-{seed}"
            run.mkdir(parents=True)
            for name in ("recipe.yaml", "metrics.jsonl", "predictions.tsv"):
                (run / name).write_bytes((trained.folder / name).read_bytes())
            scores = {name: value + shift * seed for name, value in results["test"].items()}
            data = {**results, "variant": variant, "seed": seed, "test": scores}
            (run / "results.json").write_text(json.dumps(data))
    return folder


@pytest.mark.reliability
def test_a_narrow_terminal_shows_the_verdict_whole(two_variants, tmp_path):
    text = in_terminal(WIDTH, "compare", two_variants, "--out", tmp_path)
    assert "\x1b[33mundetermined" in text
    text = plain(text)
    differing, _, scores = text.partition("\n\n")
    assert differing == "In what pre-layer differs from post-batch-with-a-name: nothing"
    table = scores.partition("right:")[0].partition("wrong:")[0]
    assert "…" not in table
    assert re.search(r"^pre-layer .*% ± .* undetermined", table, re.MULTILINE)
    assert re.search(r"^post-batch-with-a-name .*% ± .* baseline", table, re.MULTILINE)
    assert max(map(len, table.splitlines())) <= WIDTH
    head = table[: table.index("post-batch")]
    hidden = table[table.index("\npre-layer") :].partition(": in the report")[0]
    assert ("parameters" in head) != ("parameters" in hidden)  # shown, or said to be in the report
    assert "verdict" in head


def test_a_pipe_gets_lines_without_padding_and_colours(two_variants, tmp_path):
    done = call("compare", two_variants, "--out", tmp_path)
    assert done.status == 0, done.err
    assert not [line for line in done.out.splitlines() if line != line.rstrip()]  # sentences below it too
    assert "difference to post-batch-with-a-name is paired by seed" in done.out
    lines = done.out.partition("“±”")[0].splitlines()
    assert not set("".join(lines)) & set("│┃━─\x1b")
    assert "parameters" in lines[1] + lines[2] + lines[3] and max(map(len, lines)) > 100
