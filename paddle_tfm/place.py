"""Where numbers lie: the one question behind every choice of a kernel that is a CPU's.

Products by oneDNN, arrays of NumPy over a tensor's numbers where they lie, sums as matrix products, forks of a process:
each asks `on_cpu`, and elsewhere does what Paddle itself does. A test that has it answer no runs what a GPU would run.
"""

from __future__ import annotations

import paddle
from paddle import Tensor

SELECTED_GPUS = "FLAGS_selected_gpus"  # the variable by which Paddle's launcher gives each process a GPU


def on_cpu(*tensors: Tensor) -> bool:
    """Whether all of these tensors lie on the CPU; without any, whether new ones will."""
    if not tensors:
        return paddle.device.get_device() == "cpu"
    return all(tensor.place.is_cpu_place() for tensor in tensors)
