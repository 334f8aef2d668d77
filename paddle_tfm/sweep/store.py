"""A place that machines without a shared disk can all reach: a folder at a URL of fsspec, `s3://bucket/sweep`,
`sftp://host/folder`, `file:///mnt/x`. It has files with names, and needs neither locks nor renames."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from paddle_tfm.errors import UserError

INSTALL = 'pip install "fsspec>=2024.2" (in a clone: pip install -e ".[store]")'
LARGEST = 1 << 28  # bytes of what is read as a whole: the log of a million steps
FORM = "such as s3://bucket/sweep, gs://bucket/sweep, sftp://host/folder or file:///mnt/folder"


class StoreError(UserError):
    """What a store was asked for was not to be had: a sentence that names it."""


@dataclass(frozen=True)
class Store:
    """The folder at a URL. Plain data, so that any process can use it: each thread has a connection of its own.

    Raises:
        StoreError: whatever is asked for, why it was not to be had; the constructor, why there can be no such store.
    """

    url: str

    def __post_init__(self) -> None:
        protocol, separator, _ = self.url.partition("://")
        if not separator or not protocol:
            raise StoreError(f"--store {self.url}: must be a URL of fsspec, {FORM}")
        try:
            has_password = urlsplit(self.url).password is not None
        except ValueError as error:
            raise StoreError(f"--store: not a URL: {error}; it must be one {FORM}") from error
        if has_password:
            raise StoreError(
                f"--store {protocol}://…: everybody on the machine sees a password in a URL; leave it out, and use a "
                "key, the library's own file of credentials, or its environment variables"
            )

    def __str__(self) -> str:
        return self.url

    def require_usable(self) -> None:
        """Raises StoreError where nothing can be written there, read again and removed."""
        name = f"probe-{uuid4().hex}"
        self.write(name, name.encode())
        if self.read(name) != name.encode():
            raise StoreError(f"{self}: what was written there is not what is read again")
        self.remove(name)

    def read(self, name: str) -> bytes | None:
        """The content of a file; None where there is none. It is one of ours, or anybody's, who may have made it of any
        size: only what checkpoints are made of, which `download` brings, has more than LARGEST bytes."""
        with self._reached(name) as (files, path), suppress(FileNotFoundError):
            try:
                content = files.cat_file(path, start=0, end=LARGEST + 1)
            except FileNotFoundError:
                raise
            except Exception:  # an object store may know no part of an empty file
                if files.size(path):
                    raise
                content = b""
            if len(content) > LARGEST:
                raise StoreError(f"{self}/{name}: damaged: it has more than {LARGEST:,} bytes")
            return content
        return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file, of which a reader may see a part where the protocol is not that of an object store."""
        with self._reached(name) as (files, path):
            self._placed(files, path, lambda: files.pipe_file(path, content))

    def upload(self, file: Path, name: str) -> None:
        """Copy a file of this machine there."""
        with self._reached(name) as (files, path):
            self._placed(files, path, lambda: files.put_file(str(file), path))

    def download(self, name: str, file: Path) -> None:
        """Copy a file from there to this machine."""
        with self._reached(name) as (files, path):
            files.get_file(path, str(file))

    def remove(self, name: str) -> None:
        """Remove a file; one that is gone may be."""
        with self._reached(name) as (files, path), suppress(FileNotFoundError):
            files.rm_file(path)

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder below it; none where there is no such folder."""
        with self._reached(folder) as (files, path), suppress(FileNotFoundError):
            files.invalidate_cache()  # what other machines wrote since it was listed last
            return [posixpath.basename(each.rstrip("/")) for each in files.ls(path, detail=False)]
        return []

    def _placed(self, files: Any, path: str, write: Any) -> None:
        """Write, and again once the folders above are there, where a protocol has such. The store's own parent is not
        made: what is missing there may be a disk that is not mounted, or a bucket of another name."""
        try:
            write()
        except FileNotFoundError:
            root = self._root(files)
            parts = posixpath.relpath(posixpath.dirname(path), root).split("/")
            for depth in range(len(parts) + 1):
                folder = posixpath.normpath(posixpath.join(root, *parts[:depth]))
                if "/" in folder:  # else it is a bucket
                    with suppress(FileExistsError):
                        files.mkdir(folder, create_parents=False)
            write()

    def _root(self, files: Any) -> str:
        return str(files._strip_protocol(self.url)).rstrip("/")

    @contextmanager
    def _reached(self, name: str) -> Iterator[tuple[Any, str]]:
        """The file system of the URL, and the path of a file in it; whatever its library raises becomes a sentence."""
        if find_spec("fsspec") is None:
            raise StoreError(f"a store needs the package fsspec: {INSTALL}")
        from fsspec.core import url_to_fs

        files = None
        try:
            files, _ = url_to_fs(self.url)
            if "file" in files.protocol:
                _refuse_other_than_files(Path(self._root(files)), name)
            yield files, f"{self._root(files)}/{name}".rstrip("/")
        except StoreError:
            raise
        except ImportError as error:
            raise StoreError(f"{self}: its protocol needs a package that is not installed: {error}") from error
        except Exception as error:  # each protocol's library has errors of its own
            if files is not None:
                type(files).clear_instance_cache()  # a connection that broke would be used again
            raise StoreError(f"{self}: {_reason(error)}") from error


def _refuse_other_than_files(root: Path, name: str) -> None:
    """Raises StoreError where a name in a store on this machine leads through a link, by which something outside of it
    would be written or removed, or to a pipe, at which a process waits for ever."""
    path = root / name
    for place in (path, *path.parents):
        if place == root:
            return
        if place.is_symlink():
            raise StoreError(f"{place}: is a link, and no store has such; remove it")
        if place.exists() and not place.is_file() and not place.is_dir():
            raise StoreError(f"{place}: is no regular file, and no store has such; remove it")


def _reason(error: Exception) -> str:
    """What a library says went wrong, in one line."""
    if isinstance(error, FileNotFoundError):
        return "there is no such folder or bucket, and it is not made"
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return " ".join(text.split())
