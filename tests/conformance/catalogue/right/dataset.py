"""Numbers and their doubles, which need no file but with `remote`: the twin of mutants of a dataset."""

from paddle_tfm.protocols import Dataset, Example, RemoteFile


class Twin(Dataset):
    """Numbers and their doubles."""

    folder, home, licence, citation = "twin", "https://example.org/twin", "CC0-1.0", "nobody"

    def __init__(self, remote: bool = False):
        self.remote, self.count = remote, 0

    @classmethod
    def catalogue(cls):
        return [RemoteFile(f"{name}.tsv", (f"{cls.home}/{name}.tsv",), "0" * 64, 1) for name in ("train", "test")]

    def files(self):
        return self.catalogue() if self.remote else []

    def read(self, split, paths):
        first = {"train": 20, "valid": 10, "test": 1}[split]
        return (Example(str(number), str(2 * number)) for number in range(first, 2 * first))
