"""All states in which a loss of power may leave a folder, after the method of ALICE (Pillai et al., OSDI 2014).

A `Recording` turns what is done to a folder into operations: contents of files, names that come, go and change, and what
was waited for (`fsync`). Then, for every moment, every operation before it that was not waited for may have reached the
disk or not, independently of all others, and a content also by half: that is all that POSIX promises. A wait for a
file makes its content safe, one for a folder the names in it.
"""

import itertools
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

MOST = 18  # operations that may be lost at one moment: more states than anybody can try


@dataclass
class Operation:
    """`kind`: data, link, unlink, rename or sync; `node` what it is done to: a file, or the folder that holds `name`."""

    kind: str
    node: int
    name: str = ""
    target: int = 0  # what a name stands for afterwards
    new_name: str = ""
    contents: tuple = ()  # of data: what may be there


@dataclass
class Recording:
    """Within this block, what is done to the folder `root` is recorded. Waits and renames are caught as they happen;
    all else is seen as a difference at the next of these, so that its order within is not known, and not relied on."""

    root: Path
    operations: list = field(default_factory=list)
    nodes: dict = field(default_factory=dict)  # path → number; of what is there now
    contents: dict = field(default_factory=dict)  # number of a file → its content now
    begin: tuple = ()
    numbers: itertools.count = field(default_factory=itertools.count)

    def __enter__(self):
        self.patch = pytest.MonkeyPatch()
        self.nodes = {self.root: next(self.numbers)}
        self._look()
        self.begin, self.operations = (dict(self.nodes), dict(self.contents)), []
        for name in ("rename", "replace"):
            self.patch.setattr(os, name, self._renaming(getattr(os, name)))
        fsync = os.fsync

        def waiting(number):
            fsync(number)
            self._look()
            path = Path(f"/proc/self/fd/{number}").readlink()
            if path in self.nodes:
                self.operations.append(Operation("sync", self.nodes[path]))

        self.patch.setattr(os, "fsync", waiting)
        return self

    def __exit__(self, *error):
        self.patch.undo()
        self._look()
        there = {str(path.relative_to(self.root)): path for path in self.root.rglob("*")}
        self.there = {name: path.read_bytes() if path.is_file() else None for name, path in there.items()}

    def _renaming(self, rename):
        def renaming(source, target):
            self._look()
            rename(source, target)
            source, target = Path(source), Path(target)
            if source not in self.nodes:
                return
            parent, moved = self.nodes[source.parent], self.nodes[source]
            assert source.parent == target.parent
            self.operations.append(Operation("rename", parent, source.name, moved, target.name))
            self.nodes = {path: node for path, node in self.nodes.items() if not path.is_relative_to(target)}
            there = [(path, node) for path, node in self.nodes.items() if path.is_relative_to(source)]
            for path, node in there:
                del self.nodes[path]
                self.nodes[target / path.relative_to(source)] = node

        return renaming

    def _look(self):
        """Add the operations that explain what is there now."""
        now = sorted(self.root.rglob("*"))
        for path in sorted(self.nodes.keys() - {self.root, *now}, reverse=True):
            self.operations.append(Operation("unlink", self.nodes[path.parent], path.name))
            del self.nodes[path]
        for path in now:
            if path not in self.nodes:
                self.nodes[path] = next(self.numbers)
                self.operations.append(Operation("link", self.nodes[path.parent], path.name, self.nodes[path]))
            if path.is_file():
                node, content = self.nodes[path], path.read_bytes()
                before = self.contents.get(node, b"")
                if before != content:
                    kept = len(before) if content.startswith(before) else 0  # a log grows
                    half = content[: kept + (len(content) - kept) // 2]
                    self.operations.append(Operation("data", node, contents=(half, content)))
                self.contents[node] = content

    # ------------------------------------------------------------------------------------------------------- states

    def explained(self):
        """The state to which the operations lead if none is lost; `there` if the recording missed nothing."""
        return self._state(self.operations, {})

    def states(self):
        """Every state that the disk may hold, once: path below the root → content, None of a folder."""
        seen = set()
        for moment in range(len(self.operations) + 1):
            past = self.operations[:moment]
            safe = [self._is_safe(number, past) for number in range(moment)]
            pending = self._pending(past, safe)
            assert len(pending) <= MOST, [past[number] for number in pending]
            choices = [(False, *range(len(past[number].contents) or 1)) for number in pending]
            for chosen in itertools.product(*choices):
                lost = dict(zip(pending, chosen))
                state = self._state(past, lost)
                key = frozenset(state.items())
                if key not in seen:
                    seen.add(key)
                    yield state

    def _is_safe(self, number, past):
        return any(later.kind == "sync" and later.node == past[number].node for later in past[number + 1 :])

    def _pending(self, past, safe):
        """The numbers of operations that may be lost, but for those of nodes that nothing leads to any more."""
        waiting = [number for number, each in enumerate(past) if not safe[number] and each.kind != "sync"]
        folders, _ = self._applied(past, dict.fromkeys(waiting, False))
        reached, open_nodes = set(), [0, *(past[number].target for number in waiting if past[number].target)]
        while open_nodes:
            node = open_nodes.pop()
            if node not in reached:
                reached.add(node)
                open_nodes += folders.get(node, {}).values()
        return [number for number in waiting if past[number].node in reached]

    def _applied(self, past, choice):
        """folder → name → node, and file → content, after all operations but those whose `choice` is False."""
        nodes, contents = self.begin
        folders = {node: {} for path, node in nodes.items()}
        for path, node in nodes.items():
            if path != self.root:
                folders[nodes[path.parent]][path.name] = node
        contents = dict(contents)
        for number, each in enumerate(past):
            chosen = choice.get(number, len(each.contents) - 1 if each.contents else 0)
            names = folders.setdefault(each.node, {})
            if chosen is False:
                continue
            if each.kind == "data":
                contents[each.node] = each.contents[chosen]
            elif each.kind == "link":
                names[each.name] = each.target
            elif each.kind == "unlink":
                names.pop(each.name, None)
            elif each.kind == "rename":
                names.pop(each.name, None)
                names[each.new_name] = each.target
        return folders, contents

    def _state(self, past, choice):
        folders, contents = self._applied(past, choice)
        files = self.contents.keys()
        state, waiting = {}, [("", 0)]
        while waiting:
            path, node = waiting.pop()
            for name, inner in folders.get(node, {}).items():
                here = f"{path}{name}"
                state[here] = contents.get(inner, b"") if inner in files else None
                if inner not in files:
                    waiting.append((f"{here}/", inner))
        return state


def lay(state, folder):
    """Write a state into a new folder."""
    folder.mkdir(parents=True)
    for path, content in sorted(state.items()):
        if content is None:
            (folder / path).mkdir(parents=True, exist_ok=True)
        else:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
    return folder
