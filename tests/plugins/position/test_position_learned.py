import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.position.learned import Learned


def test_beyond_the_table_is_the_last_row():
    encoding, x = Learned(4, max_length=5), paddle.zeros([1, 3, 4])
    y = encoding.embed(x, paddle.to_tensor([[4, 5, 1000]])).numpy()
    np.testing.assert_array_equal(y[0], np.repeat(encoding.weight.numpy()[4:5], 3, 0))


def test_contract():
    assert Learned(4, 5).uses() == {"embed"}
    assert Learned(4, 5).weight.shape == [5, 4]
    with pytest.raises(ValueError, match="`max_length` must be at least 1, but is 0"):
        Learned(4, 0)


@pytest.mark.parametrize("initializer", ["xavier", "{name: normal, std: 3.0}"])
@pytest.mark.parametrize("max_length", [64, 2048])
def test_the_table_starts_with_a_deviation_of_its_own(make_model, max_length, initializer):
    """fairseq/models/fconv.py of 1705.03122: 0.1; whatever max_length is, and whatever draws the matrices."""
    model = make_model("model.position=learned", f"model.max_length={max_length}", f"model.initializer={initializer}")
    table = model.encoder.encodings[0].weight.numpy()
    assert table.shape == (max_length, 16) and abs(table.std() - 0.1) < 4 * 0.1 / (2 * table.size) ** 0.5
    assert (table != model.decoder.encodings[0].weight.numpy()).any()


def test_another_deviation():
    assert abs(Learned(64, 200, initial=0.5).weight.numpy().std() - 0.5) < 0.02
    with pytest.raises(ValueError, match="`initial` must be"):
        Learned(4, 5, initial=0.0)
