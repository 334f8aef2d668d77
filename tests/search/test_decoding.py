"""The engine's side of a search: a row that moves keeps what belongs to its sentence."""

import paddle
import pytest

from paddle_tfm.search.decoding import ModelDecoding


@pytest.mark.parametrize("rows", [[1, 1, 0], [2, 0, 1], [0, 1, 2], [1, 1], [0, 0, 0, 2]])
def test_rows_keep_what_belongs_to_their_sentence(make_model, make_batch, rows):
    model, batch = make_model(), make_batch((5, 3, 4), (4, 6, 2))
    tokens = paddle.to_tensor([5, 6, 7])
    with paddle.no_grad():
        memory = model.encode(batch.source, batch.source_valid)
        decoding = ModelDecoding(model, memory, [9, 9, 9], [0, 1, 2])
        decoding.advance(paddle.full([3], decoding.bos, dtype="int64"))
        whole = decoding.advance(tokens)
        decoding = ModelDecoding(model, memory, [9, 9, 9], [0, 1, 2])
        decoding.advance(paddle.full([3], decoding.bos, dtype="int64"))
        order = paddle.to_tensor(rows, dtype="int64")
        decoding.select(order)
        log_probs = decoding.advance(tokens.index_select(order))
    assert float((log_probs - whole.index_select(order)).abs().max()) < 1e-5
