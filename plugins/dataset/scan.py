"""SCAN: commands to sequences of actions, in splits that test composition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from paddle_tfm.data.lines import lines
from paddle_tfm.data.pairs import share
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.protocols import Dataset, Example, RemoteFile
from paddle_tfm.validators import one_of
from paddle_tfm_plugins.dataset._upstream import github

COMMIT = "c4b756cbc010d75c912f16c42c8f15dc6b7e6c8f"
REPLICAS = range(1, 6)
SPLITS = {  # upstream split → upstream folder
    "simple": "simple_split",
    "length": "length_split",
    **{f"addprim_{name}": "add_prim_split" for name in ("jump", "turn_left")},
    **{
        f"template_{name}": "template_split"
        for name in ("jump_around_right", "right", "opposite_right", "around_right")
    },
    **{f"filler_num{fillers}": "filler_split" for fillers in range(4)},
    **{f"fewshot_num{2**i}_rep{replica}": "few_shot_split" for i in range(11) for replica in REPLICAS},
    **{f"simple_p{2**i}": "simple_split/size_variations" for i in range(7)},
    **{
        f"addprim_complex_jump_num{2**i}_rep{replica}": "add_prim_split/with_additional_examples"
        for i in range(6)
        for replica in REPLICAS
    },
}
# The command that a split adds to its training data is never held out: nothing else shows it.
ADDED_COMMANDS = {
    "addprim_jump": "jump",
    "addprim_turn_left": "turn left",
    "addprim_complex": "jump",
    "filler": "around right",
    "fewshot": "around right",
}
VALID_SHARE = 1 / 20  # of the training commands, for valid
HASHES_AND_SIZES = {  # SHA-256, bytes
    "train_simple": ("941bb8a088c5f53ceff12fde902dc008933cf0c4203cc672c47b5f79d73262dd", 3267938),
    "test_simple": ("1fe1c8f5a19d0dc40e41bab94278f45f66f3dc415a978bd29855a23440610fc6", 812450),
    "train_length": ("b034212dc7cf87ce62f3a067dd6ad49c4d5cd18d51d615d13825516bcb1ebbc2", 2723418),
    "test_length": ("0760752ed34a75116ae11dcc1ee17526b7500060da1366540730fa24894d7db3", 1356970),
}


class Scan(Dataset):
    """Commands ("jump twice and walk left") to actions (I_JUMP I_JUMP I_TURN_LEFT I_WALK), split to test composition.

    `split` is an upstream split, named as its files are: simple, length, addprim_jump, addprim_turn_left,
    template_{around_right, jump_around_right, opposite_right, right}, filler_num{0 … 3},
    fewshot_num{1, 2, 4 … 1024}_rep{1 … 5}, simple_p{1, 2, 4 … 64}, addprim_complex_jump_num{1, 2, 4 … 32}_rep{1 … 5}.

    `cutoff` instead splits all 20,910 commands (simple, train and test) by the length of their output: up to `cutoff`
    actions to train, more to test; 26 is the one of Newman et al. 2020 (arXiv:2010.07174) and Csordás et al. 2021
    (arXiv:2108.12284).

    SCAN has no validation data: one command in twenty of the training side is held out for valid, by a hash of the
    command; valid is of the distribution of train, not of test. Commands with what a split adds (`jump`, `turn left`,
    `around right` in addprim, filler and fewshot splits) all stay in train.

    The hashes of simple and length are known; those of the other files are taken from the first copy.

    Source: Lake and Baroni, "Generalization without systematicity", ICML 2018, arXiv:1711.00350; template, filler and
    fewshot splits: Loula et al. 2018, arXiv:1807.07545.
    """

    folder = "scan"
    home = "https://github.com/brendenlake/SCAN"
    licence = "BSD"
    citation = "Lake and Baroni 2018, arXiv:1711.00350; Loula et al. 2018, arXiv:1807.07545"

    def __init__(self, split: str = "simple", cutoff: int | None = None):
        one_of(SPLITS, split=split)
        self.split, self.cutoff = split, cutoff
        if cutoff is not None and split != "simple":
            raise ValueError(_("`cutoff` splits the commands of `split: simple` again; give no other `split` with it"))
        if cutoff is not None and not 1 <= cutoff < 48:
            raise ValueError(
                _("`cutoff` must be from 1 to 47, as the longest output has 48 actions, but is {cutoff}").format(
                    cutoff=cutoff
                )
            )
        self._added_command = next((words for start, words in ADDED_COMMANDS.items() if split.startswith(start)), None)

    @classmethod
    def catalogue(cls) -> list[RemoteFile]:
        return [_file(part, split) for split in SPLITS for part in ("train", "test")]

    def files(self) -> list[RemoteFile]:
        return [_file(part, self.split) for part in ("train", "test")]

    def read(self, split: str, paths: Mapping[str, Path]) -> Iterator[Example]:
        train, test = (paths[file.name] for file in self.files())
        if self.cutoff is not None:
            for example in chain(_commands(train), _commands(test)):
                if (len(example.target.split()) > self.cutoff) == (split == "test"):
                    if split == "test" or self._held_out(example.source) == (split == "valid"):
                        yield example
        elif split == "test":
            yield from _commands(test)
        else:
            for example in _commands(train):
                if self._held_out(example.source) == (split == "valid"):
                    yield example

    def _held_out(self, command: str) -> bool:
        return share(command) < VALID_SHARE and not (self._added_command and self._added_command in command)


def _file(part: str, split: str) -> RemoteFile:
    name = f"tasks_{part}_{split}.txt"
    return RemoteFile(
        name,
        github("brendenlake/SCAN", COMMIT, f"{SPLITS[split]}/{name}"),
        *HASHES_AND_SIZES.get(f"{part}_{split}", ()),
    )


def _commands(path: Path) -> Iterator[Example]:
    for number, line in enumerate(lines(path), 1):
        command, mark, actions = line.partition(" OUT: ")
        if not mark or not command.startswith("IN: "):
            raise UserError(_("{path}, line {number}: not `IN: command OUT: actions`").format(path=path, number=number))
        yield Example(command.removeprefix("IN: ").strip(), actions.strip())
