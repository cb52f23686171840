"""What the batch system and the launcher know of a job."""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from simulator.site import BATCH_CNAMES, BATCH_HOSTS, BATCH_SERVER, CORES_PER_NODE, User

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Kind(Enum):
    """What a job does to the filesystem: its label in the truth file."""

    SIMULATION = "simulation"
    CHECKPOINTER = "checkpointer"
    SCANNER = "stat-heavy scanner"
    SMALL_FILES = "small files"
    ENSEMBLE = "ensemble of scripts"
    ANALYSIS = "analysis"
    PANDA = "panda"
    PANDA_CRISIS = "panda, wide stripes"  # over 2 million metadata operations on 300 nodes
    PANDA_STRIPED = "panda, one stripe"  # after the mitigation


PILOTS = frozenset({Kind.PANDA, Kind.PANDA_CRISIS, Kind.PANDA_STRIPED})


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


@dataclass(eq=False)
class Job:
    """A batch job; times are epoch seconds.

    Args:
        number: the batch id without its server.
        user: who submitted it.
        name: its name.
        queue: its queue.
        kind: what it does.
        node_count: nodes it asks for.
        limit_s: wall time it asks for.
        runtime_s: wall time it needs.
        submitted: when it was submitted.
        delete_at: when somebody deletes it if it is not over; None: nobody does.
        started: None: still queued when the logs end.
        ended: None: still running when the logs end.
        nodes: the node numbers it holds, ascending.
        exit_status: of its script, as PBS reports it.
        busy_share: CPU time / (cores x wall time).
        launches: its application starts.
    """

    number: int
    user: User
    name: str
    queue: str
    kind: Kind
    node_count: int
    limit_s: int
    runtime_s: int
    submitted: int
    delete_at: int | None = None
    started: int | None = None
    ended: int | None = None
    nodes: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    exit_status: int = 0
    busy_share: float = 0.9
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
