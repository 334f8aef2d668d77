"""How much memory can be taken, by the files in which Linux says it."""

import math

import pytest

from paddle_tfm import memory

MACHINE = {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    8000 kB\nActive(anon): 7 kB\nHugePages_Total:  3\n"}
OF_TWO = {
    **MACHINE,
    "proc/self/cgroup": "0::/job/cell\n",
    "sys/fs/cgroup/job/memory.max": "5000000\n",
    "sys/fs/cgroup/job/memory.current": "3500000\n",
    "sys/fs/cgroup/job/memory.stat": "anon 3200000\nactive_file 200000\ninactive_file 100000\nshmem 50000\n",
    "sys/fs/cgroup/job/cell/memory.max": "max\n",
    "sys/fs/cgroup/job/cell/memory.current": "1000000\n",
}
OF_ONE = {
    **MACHINE,
    "proc/self/cgroup": "5:cpu:/\n4:memory:/docker/1a:b\n0::/\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "4000000\n",  # a container sees its own group at the top
    "sys/fs/cgroup/memory/memory.usage_in_bytes": "3000000\n",
    "sys/fs/cgroup/memory/memory.stat": "inactive_file 9\ntotal_active_file 300000\ntotal_inactive_file 400000\n",
}


@pytest.mark.parametrize(
    "files, free",
    [
        ({}, math.inf),
        (MACHINE, 8_192_000),
        (OF_TWO, 1_800_000),
        ({**OF_TWO, "sys/fs/cgroup/job/cell/memory.max": "1200000\n"}, 200_000),
        ({**OF_TWO, "sys/fs/cgroup/job/memory.current": "6000000\n"}, 0),
        ({**OF_TWO, "sys/fs/cgroup/job/memory.max": "9223372036854771712\n"}, 8_192_000),
        ({**OF_TWO, "proc/self/cgroup": "0::/../../../../job\n"}, 8_192_000),  # of another name space: not ours
        (OF_ONE, 1_700_000),
    ],
)
def test_what_is_free_is_the_least_that_machine_and_groups_leave(files, free, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory.free(tmp_path) == free


def test_this_machine_has_some():
    assert 1 << 20 < memory.free() < 1 << 50
