"""Arrays of a .npz file, read without pickle, and without memory for more than the file has."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path

import numpy as np

from paddle_tfm import memory
from paddle_tfm.errors import UserError
from paddle_tfm.language import _

NUMBERS = {"<f4", "<f2", "|i1", "|u1", "<f8", "<i4", "<i8"}  # what an array may hold
MOST_ARRAYS = 100_000
LONGEST_HEADER = 10_000  # bytes, NumPy's own bound


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """name → array of all that a .npz file holds.

    Raises:
        UserError: it cannot be read, is no .npz file, or an array holds anything but numbers, or says that it has more
            than there is.
    """
    arrays = {}
    try:
        with zipfile.ZipFile(path) as file:
            members = file.infolist()
            if len(members) > MOST_ARRAYS:
                raise UserError("{path}: it holds {number} arrays".format(path=path, number=f"{len(members):,}"))
            memory.require(sum(member.file_size for member in members), str(path))
            for member in members:
                name = member.filename.removesuffix(".npy")
                if member.compress_type == zipfile.ZIP_STORED and member.file_size != member.compress_size:
                    raise UserError(f"{path}: damaged: {name} has two sizes")
                with file.open(member) as stream:
                    arrays[name] = _array(stream, member.file_size, f"{path}: {name}")
    except FileNotFoundError as error:
        raise UserError(_("{path}: no such file").format(path=path)) from error
    except (OSError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise UserError(f"{path}: no .npz file that can be read: {error}") from error
    return arrays


def _array(stream, size: int, name: str) -> np.ndarray:
    """The array of a member of `size` bytes. Raises ValueError: it is none."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise UserError(f"{name}: an array of an unknown version")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, in_columns, dtype = read(stream, max_header_size=LONGEST_HEADER)
    if dtype.str not in NUMBERS:
        sentence = f"{name}: must hold numbers, but holds '{dtype.str}', which is never read: it may be code"
        raise UserError(sentence)
    number = math.prod(shape)
    if number * dtype.itemsize != size - stream.tell():
        text = "{name}: damaged: it says that it has {wanted} bytes, but has {size}"
        wanted, there = number * dtype.itemsize, size - stream.tell()
        raise UserError(text.format(name=name, wanted=f"{wanted:,}", size=f"{there:,}"))
    array = np.frombuffer(stream.read(), dtype)
    return array.reshape(shape, order="F" if in_columns else "C")
