"""The section that loads models, on small real runs: attention maps."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

import paddle_tfm
from paddle_tfm import create_registry
from paddle_tfm.comparison.recorded_runs import compare_recorded
from paddle_tfm.comparison.report.attention_maps import CELL, heat_map
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.sections.attention import Attention
from paddle_tfm.inference.alignment import align
from paddle_tfm.inference.attention_weights import head_weights, read_by
from paddle_tfm.inference.translate import Translation
from paddle_tfm.testing.kinds.section import Elements

SETTINGS = [
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 5, train: 80, valid: 6, test: 12}",
    "model.d_model=16", "model.num_heads=2", "model.d_ff=16", "model.encoder_layers=2", "model.decoder_layers=1",
    "model.max_length=10", "model.dropout=0.0", "train.max_tokens=128", "train.steps=6", "evaluate.every=6",
    "variants={sinusoidal: {}, learned: {model.position: learned}}",
    "evaluate.metrics=[exact_match]", "evaluate.best=loss", "baseline=sinusoidal",
]  # fmt: skip


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "out"
    paddle_tfm.run("base", [*SETTINGS, "name=two"], out=folder)
    return folder


@pytest.fixture(scope="module")
def registry():
    return create_registry()


@pytest.fixture(scope="module")
def facts(out, registry):
    return Facts(compare_recorded([out]), registry)


def test_without_checkpoints_there_is_nothing_to_show(out, registry, tmp_path):
    shutil.copytree(out, tmp_path / "copy")
    for folder in (tmp_path / "copy").rglob("checkpoints"):
        shutil.rmtree(folder)
    assert not Attention().applies(Facts(compare_recorded([tmp_path / "copy"]), registry))


def test_attention_is_that_of_an_alignment_with_every_head_and_both_axes(facts):
    run = facts.models(facts.run_of("sinusoidal"))
    items = {item.name: item for item in head_weights(run.model, run.codec, "1 2 3", "3 2 1")}
    assert list(items) == ["encoder.0.self", "encoder.1.self", "decoder.0.cross", "decoder.0.self"]
    cross, own = items["decoder.0.cross"], items["decoder.0.self"]
    ids = run.codec.encode(paddle_tfm.protocols.Example("1 2 3", "3 2 1")).target[:-1]
    output = Translation("3 2 1", tuple(run.codec.pieces(ids)), tuple(ids), 0.0)
    (alignment,) = align(run.model, run.codec, ["1 2 3"], [output], 0)
    assert cross.weights.shape == (2, 4, 4) and list(alignment.source) == list(cross.keys[:-1])
    np.testing.assert_allclose(cross.weights.mean(0)[:3, :3], alignment.weights, atol=1e-6)
    np.testing.assert_allclose(own.weights.sum(-1), 1, atol=1e-5)
    assert np.triu(own.weights[0], 1).max() < 1e-20 and list(own.queries) == ["<s>", *cross.queries[:-1]]


def test_attention_maps_stand_side_by_side_for_sentences_on_which_variants_differ(facts):
    section = Attention()
    assert section.applies(facts)
    html = section.html(facts)
    assert not Elements(html).wrong and len(html) < 400_000
    names = re.findall(r"> ?(encoder \d|cross \d|decoder \d)</label>", html)
    assert names == ["encoder 0", "encoder 1", "cross 0", "decoder 0"]
    checked = re.search(r'id="layer-(\d)" checked', html)[1]
    assert names[int(checked)] == "cross 0"
    first = html.split('<div class="example">')[1]
    assert all(name in first for name in ("sinusoidal", "learned"))
    assert first.count("<svg") == 2 * 4 * (2 + 1)  # variants, attentions, heads and their mean


def test_attention_is_shown_on_the_sentences_that_were_chosen(out, registry):
    text = "1 2 2 1 3"
    chosen = Facts(compare_recorded([out]), registry, [text, "1 2 3 4 1 2 3 4 1 2"])
    section = Attention()
    assert section.applies(chosen)
    html = section.html(chosen)
    assert not Elements(html).wrong and html.count('class="example"') == 1
    run = chosen.models(chosen.run_of("learned"))
    (output,) = run.hypotheses([text])[0]
    block = html.split('<div class="example">')[1]
    assert f">{text}</h3>" in block and f'<bdi>learned</bdi>: <span dir="auto">{output.text}</span>' in block
    assert all(f"<bdi>{name}</bdi>" in block for name in ("sinusoidal", "learned"))
    # the second has more pieces than the models read
    assert "learned, “1 2 3 4 1 2 3 4 1 2”: 10 pieces are more than the 9 that the model reads" in html


def test_a_text_is_read_with_the_output_that_the_model_writes(facts):
    run = facts.models(facts.run_of("sinusoidal"))
    reading = read_by(run, "2 1 3")
    assert reading.output == run.translate(["2 1 3"])[0]
    expected = head_weights(run.model, run.codec, "2 1 3", reading.output)
    for one, other in zip(reading.attentions, expected, strict=True):
        assert (one.name, list(one.queries), list(one.keys)) == (other.name, list(other.queries), list(other.keys))
        np.testing.assert_array_equal(one.weights, other.weights)
    cut = expected[0].cut(2)
    assert cut.weights.shape == (2, 2, 2) and len(cut.queries) == len(cut.keys) == 2
    np.testing.assert_array_equal(cut.weights, expected[0].weights[:, :2, :2])


def test_a_map_has_a_shade_for_every_share_and_names_as_text():
    html = heat_map("h & h", np.array([[1.0, 1.0, 0.5], [0.0, float("nan"), 0.02]]), ["<u>", "long long piece"], "a旋b")
    shapes = {opacity: d for d, opacity in re.findall(r'd="([^"]+)" style="fill:var.*?fill-opacity:([\d.]+)', html)}
    assert set(shapes) == {"1", "0.5"}
    assert f"h{2 * CELL}v{CELL}" in shapes["1"] and shapes["1"].count("M") == shapes["0.5"].count("M") == 1
    assert "&lt;u&gt;" in html and "<u>" not in html and "h &amp; h" in html and "long␣long…" in html
    assert "&lt;u&gt; on a" in html
