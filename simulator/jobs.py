"""What the batch system and the launcher know of a job."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simulator.site import BATCH_CNAMES, BATCH_HOSTS, BATCH_SERVER, CORES_PER_NODE, User

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Launch:
    """An application start inside a job (one aprun)."""

    apid: int
    started_us: int
    ended_us: int | None  # None: still running when the logs end
    nodes: Ints  # node numbers, ascending
    command: str
    exit_code: int = 0
    exit_signal: int = 0


@dataclass
class Job:
    """A batch job; times are epoch seconds."""

    number: int
    user: User
    name: str
    queue: str
    node_count: int
    limit_s: int
    submitted: int
    started: int | None = None  # None: still queued when the logs end
    ended: int | None = None  # None: still running when the logs end
    nodes: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    exit_status: int = 0
    busy_share: float = 0.9  # CPU time / (cores x wall time)
    launches: list[Launch] = field(default_factory=list)

    @property
    def batch_id(self) -> str:
        """Return the id as PBS prints it and Lustre clients send it."""
        return f"{self.number}.{BATCH_SERVER}"

    @property
    def batch_host(self) -> str:
        """Return the service node that runs the job's script: the one PBS calls exec_host."""
        return BATCH_HOSTS[self.number % len(BATCH_HOSTS)]

    @property
    def batch_cname(self) -> str:
        """Return the same node's name as syslog prints it."""
        return BATCH_CNAMES[self.number % len(BATCH_CNAMES)]

    @property
    def cores(self) -> int:
        """Return the number of cores that the job holds."""
        return self.node_count * CORES_PER_NODE
