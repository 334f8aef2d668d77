"""What the listener for VisualDL writes: histograms and images beside NumPy, and the same after a run was resumed."""

import io
import time

import numpy as np
import pytest
from PIL import Image
from visualdl import LogReader
from visualdl.proto.record_pb2 import Record

from paddle_tfm.runs import checkpoint
from paddle_tfm.train.trainer import Interrupted
from paddle_tfm_plugins.listener._visualdl_images import END
from paddle_tfm_plugins.listener._visualdl_picture import CELL, LEFT, NAMED_CELL, TOP, Axes, corner, draw
from paddle_tfm_plugins.listener._visualdl_records import read_records


def logged(run) -> dict[tuple, Record]:
    """(kind, tag, step) → record; every key is there once."""
    records: dict[tuple, Record] = {}
    for record in read_records(run.folder / "vdl"):
        (value,) = record.values
        key = (value.WhichOneof("one_value"), value.tag, value.id)
        assert key not in records, f"{key} is written twice"
        records[key] = value
    kinds = {(tag, kind) for kind, tag, _ in records}
    assert len(kinds) == len({tag for tag, _ in kinds}), "VisualDL takes all that has one tag for one kind"
    return records


def test_what_a_killed_process_left_half_written_is_skipped(make_trainer):
    trainer = make_trainer()
    trainer.stop = lambda: trainer.run.step >= 6
    with pytest.raises(Interrupted):
        trainer.train()
    time.sleep(0.2)
    (file,) = (trainer.run.folder / "vdl").iterdir()
    whole = [*read_records(file.parent)]
    file.write_bytes(file.read_bytes()[:-3])
    assert [*read_records(file.parent)] == whole[:-1]


def test_histograms_are_numpys_of_weights_and_of_the_gradients_of_the_last_update(make_trainer):
    """Gradients from Adam's first moment: after one step it is (1 - beta1) g of the clipped gradient g."""
    trainer = make_trainer("train.steps=1", "train.clip_norm=0.5", "train.optimizer={name: adam, beta1: 0.75}")
    trainer.train()
    records = logged(trainer.run)
    weights = checkpoint.load_arrays(trainer.run.folder / "checkpoints" / "last")
    moments = {name: value.numpy() for name, value in trainer.step.optimizer.state_dict().items() if "moment1" in name}
    names = {
        name: one.name for name, one in trainer.run.model.named_parameters() if name.startswith("encoder.layers.0.")
    }
    gradients = [moment for one in names.values() for key, moment in moments.items() if key.startswith(f"{one}_")]
    for kind, values in (("weights", [weights[name] for name in names]), ("gradients", gradients)):
        values = np.concatenate([one.reshape(-1) for one in values]) / (0.25 if kind == "gradients" else 1)
        counts, edges = np.histogram(values, bins=40)
        value = records["histogram", f"{kind}/encoder.0", 1].histogram
        np.testing.assert_allclose(value.bin_edges, edges, rtol=1e-4, atol=1e-8)
        assert sum(value.hist) == values.size > 500
        assert np.abs(np.array(value.hist) - counts).sum() <= 4  # a value may lie on an edge


def test_the_images_of_attention_show_the_weights_of_every_head_beside_their_pieces(make_trainer):
    trainer = make_trainer("train.steps=4")
    trainer.train()
    run, records = trainer.run, logged(trainer.run)
    example = run.encoded["valid"][0]
    rows, columns, heads = len(example.target), len(example.source), run.settings.model.num_heads
    sides = (run.codec.target, example.example.target), (run.codec.source, example.example.source)
    names = [[*tokenizer.tokenize(text), END] for tokenizer, text in sides]
    for head in range(heads):
        value = records["image", f"attention/last_layer_head_{head}", 4]
        image = np.asarray(Image.open(io.BytesIO(value.image.encoded_image_string)))[..., 0]
        axes = Axes("", "", "", 1, 0, *names)
        top, left = corner(axes)
        weights = 1 - image[top:, left:][: rows * NAMED_CELL : NAMED_CELL, : columns * NAMED_CELL : NAMED_CELL] / 255
        assert weights.shape == (rows, columns)
        np.testing.assert_allclose(weights.sum(1), 1, atol=columns / 255)  # a softmax over all keys
        around = draw(1 - weights[None], axes)  # the names: of the right pieces, in their order
        places = (
            np.s_[top : top + rows * NAMED_CELL, 30 : left - 4],
            np.s_[30 : top - 4, left : left + columns * NAMED_CELL],
        )
        for place in places:
            assert (around[place] < 128).any() and (around[place] == image[place]).all()


HEADS = [f"attention/last_layer_head_{head}" for head in range(2)]


@pytest.mark.parametrize(
    ("overrides", "images"),
    [
        (["model.position=alibi"], {*HEADS, "position/encoder", "position/decoder"}),
        (["model.position=rotary"], {*HEADS}),
        (["model.position=learned"], {*HEADS, "position/encoder", "position/decoder"}),
    ],
    ids=["alibi", "rotary", "learned"],  # not of the sets: their order differs between processes
)
def test_encodings_that_add_something_are_drawn(make_trainer, overrides, images):
    trainer = make_trainer("train.steps=4", *overrides, strict=True)
    trainer.train()
    assert {tag for kind, tag, _ in logged(trainer.run) if kind == "image"} == images


def test_what_is_drawn_of_the_sinusoidal_encoding_is_its_formula(make_trainer):
    trainer = make_trainer("train.steps=4")
    trainer.train()
    value = logged(trainer.run)["image", "position/encoder", 4]
    grey = np.asarray(Image.open(io.BytesIO(value.image.encoded_image_string)))[TOP:, LEFT:, 0] / 127.5 - 1
    grey = grey[: 64 * CELL : CELL, : 16 * CELL : CELL]
    position, pair = np.arange(64)[:, None], np.arange(8)[None, :]
    angle = position / 10000 ** (2 * pair / 16)
    both = np.stack([np.sin(angle), np.cos(angle)], -1)
    expected = [both.reshape(64, 16), np.concatenate([both[..., 0], both[..., 1]], 1)]  # interleaved, or halves
    assert min(np.abs(grey - table).max() for table in expected) < 0.02


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("black, white", [(1.0, 0.0), (0.0, 1.0)])
def test_what_is_no_number_is_drawn_as_nothing(black, white):
    maps = np.full((1, 2, 2), black, "float32")
    maps[0, 1, 0] = np.nan
    image = draw(maps, Axes("rows", "columns", "scale", black, white))
    assert [[image[TOP + row * CELL, LEFT + column * CELL] for column in (0, 1)] for row in (0, 1)] == [
        [0, 0],
        [255, 0],
    ]


@pytest.mark.parametrize("split", ["test", "valid"])
def test_the_board_names_the_split_that_was_scored(make_trainer, tmp_path, split):
    overrides = ["train.steps=4"]
    if split == "valid":
        for name in ("train", "valid"):
            (tmp_path / f"{name}.tsv").write_text("1 2\t2 1\n3 1\t1 3\n")
        overrides.append(f"task={{name: parallel, train: {tmp_path}/train.tsv, valid: {tmp_path}/valid.tsv}}")
    trainer = make_trainer(*overrides)
    results = trainer.train()
    (file,) = (trainer.run.folder / "vdl").iterdir()
    reader = LogReader(file_path=str(file))
    (row,) = reader.get_data("hyper_parameters", "hparam")
    names = [f"{split}/{name}" for name in results["valid"]]
    assert [info.name for info in row.hparam.metricInfos] == names
    scalars = reader.get_tags()["scalar"]
    assert set(names) <= set(scalars)
    assert any(tag.startswith("test/") for tag in scalars) == (split == "test")
    assert [point.id for point in reader.get_data("scalar", "valid/loss")] == [4]
