"""What a launcher (Paddle's, Slurm's, mpirun's) says in the environment of the processes that it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paddle_tfm.units import whole_number


@dataclass(frozen=True)
class Launched:
    """What a launcher says of this process: which of `size` it is. `address` is HOST:PORT, "" where it says none."""

    launcher: str
    rank: int
    size: int
    on_this_machine: int = 1
    address: str = ""

    @classmethod
    def read(cls, variables: Mapping[str, str]) -> Launched | None:
        """What stands in the environment; None where no launcher started several processes of this command."""

        def number(name: str) -> int | None:
            return whole_number(variables.get(name, ""), 0, 1 << 20)

        for launcher, rank_name, size_name, address in (
            ("paddle.distributed.launch", "PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", _paddles_address(variables)),
            ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ""),
            ("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ""),
            ("mpirun", "PMI_RANK", "PMI_SIZE", ""),
        ):
            rank, size = number(rank_name), number(size_name)
            if rank is not None and size is not None and size > 1:
                local = number("PADDLE_LOCAL_SIZE") if address else None  # the others bind each process to its cores
                return cls(launcher, rank, size, local or 1, address)
        return None


def _paddles_address(variables: Mapping[str, str]) -> str:
    return variables.get("PADDLE_MASTER") or variables.get("PADDLE_TRAINER_ENDPOINTS", "").partition(",")[0]
