"""The pieces of rows that kernels are kept for. What these compute the kit says, of every kernel that is built of them."""

from __future__ import annotations

import pytest

from paddle_tfm.kernels.cpu import row_kernels


@pytest.mark.parametrize("number", [0, 1, 15, 16, 17, 255, 256, 4095, 4096, 70_001])
def test_pieces_cover_all_rows_once_and_have_few_sizes(number):
    parts = row_kernels.pieces(number)
    assert [row for first, size in parts for row in (first, first + size)][1:-1:2] == [first for first, _ in parts[1:]]
    assert sum(size for _, size in parts) == number and len(parts) <= 5
    for _, size in parts:
        assert f"{size:x}".rstrip("0") in set("123456789abcdef")
