"""Alignments: the attention weights of cached decoding, without padding, neighbours and ends."""

import io

import numpy as np
import paddle
import pytest
from matplotlib import font_manager, image

import paddle_tfm
from paddle_tfm import UserError, plotting
from paddle_tfm.data.batches import collate
from paddle_tfm.data.vocabulary import BOS
from paddle_tfm.inference.alignment import Alignment, AlignmentFolder, align, draw
from paddle_tfm.inference.attention_weights import END, head_weights
from paddle_tfm.inference.translate import Translation
from paddle_tfm.plotting import fonts
from paddle_tfm.protocols import Example, Tap

TEXTS = ["1 2 3", "", "4", "5 6 1 2 3 4"]


def step_by_step(run, text, ids, layer):
    """The cross-attention of cached decoding, a token at a time: [T, S], the source's end a column."""
    batch = collate([run.codec.encode(Example(text, ""))]).tensors()
    with paddle.no_grad():
        state = run.model.start(run.model.encode(batch.source, batch.source_valid))
        rows = []
        for token in [BOS, *ids][: len(ids)]:
            tap = Tap(recording=True)
            _, state = run.model.decode(paddle.to_tensor([[token]]), state, tap=tap)
            maps = dict(tap.recorded)[f"decoder.{layer}.cross.attention"]  # [1, H, 1, S]
            rows.append(maps.numpy()[0, :, 0].mean(0))
    return np.stack(rows)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("max_tokens", [1, 4096])
def test_weights_are_those_of_decoding(trained_run, layer, max_tokens):
    outputs = [several[0] for several in trained_run.hypotheses(TEXTS)]
    for text, output, alignment in zip(
        TEXTS, outputs, align(trained_run.model, trained_run.codec, TEXTS, outputs, layer, max_tokens)
    ):
        assert alignment.source == tuple(trained_run.codec.source.tokenize(text))
        assert alignment.target == output.pieces
        assert alignment.weights.shape == (len(output.pieces), len(text.split()))
        if text:
            expected = step_by_step(trained_run, text, output.ids, layer)
            np.testing.assert_allclose(alignment.weights, expected[:, :-1], atol=1e-5)
            np.testing.assert_allclose(expected.sum(-1), 1, atol=1e-5)
            pairs = [(int(np.argmax(row[:-1])), j) for j, row in enumerate(expected)]
            assert alignment.pairs() == pairs


def test_the_last_layer_is_the_default(trained_run):
    outputs = [several[0] for several in trained_run.hypotheses(TEXTS)]
    last, same, other = (
        align(trained_run.model, trained_run.codec, TEXTS, outputs, layer)[0].weights for layer in (None, 1, 0)
    )
    np.testing.assert_array_equal(last, same)
    assert not np.allclose(last, other)


def test_a_tap_records_only_what_it_is_for(trained_run):
    """The weights of all layers together would fill the memory."""
    batch, name = collate([trained_run.codec.encode(Example("1 2", "2 1"))]).tensors(), "decoder.1.cross.attention"
    tap, whole = Tap(recording=True, only=frozenset({name})), Tap(recording=True)
    for each in (tap, whole):
        trained_run.model(batch, each)
    assert [recorded for recorded, _ in tap.recorded] == [name]
    np.testing.assert_array_equal(tap.recorded[0][1].numpy(), dict(whole.recorded)[name].numpy())
    assert len(whole.recorded) > 10


def test_an_output_without_a_piece_aligns_with_nothing(trained_run):
    (alignment,) = align(trained_run.model, trained_run.codec, ["1 2"], [Translation("", (), (), -3.0)])
    assert alignment.pairs() == [] and alignment.weights.shape == (0, 2)


def test_what_has_no_weights_is_refused(trained_run, tmp_path):
    with pytest.raises(UserError, match="attention layer 2: the decoder has the layers 0 to 1"):
        align(trained_run.model, trained_run.codec, [], [], 2)
    model = paddle_tfm.build_model(
        "base", ["model.attention=linear", "model.d_model=16"], source_vocabulary=10, target_vocabulary=10
    )
    outputs = [several[0] for several in trained_run.hypotheses(["1"])]
    with pytest.raises(UserError, match=r"layer 1: the cross-attention .* has no weights to show \(LinearAttention\)"):
        align(model, trained_run.codec, ["1"], outputs)


def test_an_attention_to_both_texts_aligns_by_what_it_gives_the_source(trained_run):
    overrides = ["model.attention={encoder: multihead, decoder: merged}", "model.d_model=16", "model.num_heads=2"]
    codec, words = trained_run.codec, len(trained_run.codec.source_vocabulary)
    model = paddle_tfm.build_model("base", overrides, source_vocabulary=words, target_vocabulary=words)
    outputs = [several[0] for several in trained_run.hypotheses(["1 2 3", "4"])]
    first, second = align(model, codec, ["1 2 3", "4"], outputs, layer=0)
    assert first.weights.shape == (len(outputs[0].pieces), 3) and second.weights.shape == (len(outputs[1].pieces), 1)
    maps = {each.name: each for each in head_weights(model, codec, "1 2 3", outputs[0].text)}
    whole = maps["decoder.0.self"]
    assert list(whole.keys) == [*first.source, END, *whole.queries] and "decoder.0.cross" not in maps
    np.testing.assert_allclose(whole.weights.sum(-1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(whole.weights.mean(0)[: len(first.weights), :3], first.weights, rtol=1e-4, atol=1e-6)


def test_the_model_is_left_as_it_was(trained_run):
    outputs = [several[0] for several in trained_run.hypotheses(["1 2"])]
    trained_run.model.train()
    align(trained_run.model, trained_run.codec, ["1 2"], outputs)
    assert trained_run.model.training
    trained_run.model.eval()


# ------------------------------------------------------------------------------------------------------------ pictures


def darkness(png):
    """How dark each pixel is."""
    return 1 - image.imread(io.BytesIO(png))[..., :3].mean(-1)


def test_a_picture_is_dark_where_the_attention_is():
    def picture(row, column):
        weights = np.zeros((6, 3), np.float32)
        weights[row, column] = 1.0
        return darkness(draw(Alignment(("a", "b", "c"), tuple("uvwxyz"), weights), ["DejaVu Sans"], set()))

    lower_left = picture(5, 0)  # the last target piece looked at the first source piece
    difference = lower_left - picture(0, 2)
    (low, left), (high, right) = ([places.mean() for places in np.nonzero(sign * difference > 0.9)] for sign in (1, -1))
    height, width = difference.shape
    assert low - high > height / 3 and right - left > width / 8
    assert (difference > 0.9).sum() > 200  # a cell, and not a line of it


def test_fonts_are_found_for_what_can_be_shown():
    assert fonts(set("abc▁␣é$")) == (["DejaVu Sans"], set())
    families, missing = fonts({"a", "\U000e1234"})
    assert (families, missing) == (["DejaVu Sans"], {"\U000e1234"})
    families, missing = fonts(set("我爱a"))
    assert (len(families) == 2) == (not missing)


def test_a_font_that_was_installed_since_matplotlib_made_its_list_is_found(monkeypatch, tmp_path):
    """Its list without the fonts that show the character, as a cache from before has it."""
    _, missing = fonts(set("我"))
    if missing:
        pytest.skip("no font here shows Chinese")
    manager = font_manager.fontManager
    family = fonts(set("我"))[0][1]
    monkeypatch.setattr(manager, "ttflist", [font for font in manager.ttflist if "DejaVu" in font.name])
    plotting._add_new_fonts.cache_clear()
    assert fonts(set("我")) == (["DejaVu Sans", family], set())
    plotting._add_new_fonts.cache_clear()


def test_a_picture_names_its_axes_and_its_scale():
    """Each label is there: without it the picture is narrower or emptier where it stands."""
    from matplotlib.figure import Figure

    seen = {}
    draw_figure = plotting.image

    def look(figure: Figure, **options):
        first, scale = figure.axes
        seen.update(inches=tuple(figure.get_size_inches() / (2, 1)))
        seen.update(x=first.get_xlabel(), y=first.get_ylabel(), scale=scale.get_ylabel(), limits=scale.get_ylim())
        return draw_figure(figure, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plotting, "image", look)
        draw(Alignment(("a", "b"), ("c",), np.array([[0.25, 0.75]])), ["DejaVu Sans"], set())
    assert seen.pop("scale") == "attention weight, mean of heads"
    across, down = seen.pop("inches")
    assert across == down  # cells are squares
    assert seen == {"x": "source pieces", "y": "target pieces", "limits": (0.0, 1.0)}


@pytest.mark.parametrize(("pieces", "upright"), [(("▁我", "昨天"), True), (("▁bought", "a"), False)])
def test_short_source_pieces_are_not_turned(monkeypatch, pieces, upright):
    """Chinese characters are hard to read on their side."""
    figures = []
    monkeypatch.setattr(plotting, "image", lambda figure, **options: figures.append(figure))
    draw(Alignment(pieces, ("c",), np.array([[0.25, 0.75]])), ["DejaVu Sans"], set())
    turns = {label.get_rotation() for label in figures[0].axes[0].get_xticklabels()}
    assert turns == {0.0 if upright else 90.0}


def test_pieces_without_a_font_are_named_by_index_and_that_is_said_once(tmp_path, monkeypatch):
    monkeypatch.setattr("paddle_tfm.inference.alignment.PICTURES", 3)
    warnings = []
    folder = AlignmentFolder(tmp_path / "maps", warnings.append)
    strange = Alignment(("a", "\U000e1234b"), ("$x$", "^"), np.eye(2, dtype=np.float32))
    folder.add([strange, strange])
    folder.add([strange, strange])
    (sentence,) = warnings
    assert "no installed font shows \U000e1234; pictures name such pieces by their index" in sentence
    assert "install Noto Sans CJK" in sentence
    assert sorted(path.name for path in (tmp_path / "maps").glob("*.png")) == ["00001.png", "00002.png", "00003.png"]
    plain = draw(Alignment(("a", "[1]"), ("$x$", "^"), strange.weights), ["DejaVu Sans"], set())
    assert (tmp_path / "maps" / "00001.png").read_bytes() == plain
    draw(Alignment(("$\\frac$",), ("x",), strange.weights[:1, :1]), ["DejaVu Sans"], set())  # is no formula


def test_files_have_a_line_for_each_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("paddle_tfm.inference.alignment.PICTURES", 0)
    folder = AlignmentFolder(tmp_path / "maps", str)
    empty = Alignment((), (), np.zeros((0, 0), np.float32))
    folder.add([Alignment(("a", " ", "b\n"), ("x", "y"), np.array([[0.1, 0.2, 0.6], [0.5, 0, 0]])), empty])
    folder.add([Alignment(("a",), ("x",), np.array([[0.3]]))])
    read = {path.name: path.read_text("utf-8") for path in (tmp_path / "maps").iterdir()}
    assert read == {
        "alignments.txt": "2-0 0-1\n\n0-0\n",
        "source.pieces": "a ␣ b␣\n\na\n",
        "target.pieces": "x y\n\nx\n",
    }
    with pytest.raises(UserError, match="there are files in it already; name a new folder"):
        AlignmentFolder(tmp_path / "maps", str)
