"""Jobs as known to the batch systems and the launcher."""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from simulator import site
from simulator.site import BATCH_CNAMES, BATCH_HOSTS, BATCH_SERVER, CORES_PER_NODE, User
from simulator.story import Era

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Kind(Enum):
    """Kind of activity: its label in the truth file."""

    SIMULATION = "simulation"
    CHECKPOINTER = "checkpointer"
    SCANNER = "stat-heavy scanner"
    SMALL_FILES = "small files"
    STORM = "metadata storm"
    ENSEMBLE = "ensemble of scripts"
    ANALYSIS = "analysis"
    PANDA = "panda"


@dataclass(frozen=True)
class Demand:
    """Filesystem operations of one pilot."""

    opens: int
    closes: int
    cost: float  # of all other operations, per node, as a multiple of the usual cost
    read_bytes: int
    write_bytes: int


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
        number: batch id without its server.
        user: owner.
        name: job name.
        queue: queue.
        kind: kind of activity.
        node_count: requested nodes.
        limit_s: requested wall time.
        runtime_s: needed wall time.
        submitted: time of submission.
        cluster: cluster.
        cores_per_node: requested cores; with fewer than a node has, it shares its nodes.
        era: era of the campaign, for pilots.
        demand: operations, for pilots.
        delete_at: time of deletion by a person if it still runs; None: never.
        started: None: still queued when the logs end.
        ended: None: still running when the logs end.
        nodes: assigned node numbers, ascending.
        exit_status: status of its script, as reported by PBS.
        busy_share: CPU time / (cores x wall time).
        launches: application starts.
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
    cluster: str = site.CLUSTER
    cores_per_node: int = CORES_PER_NODE
    era: Era | None = None
    demand: Demand | None = None
    delete_at: int | None = None
    started: int | None = None
    ended: int | None = None
    nodes: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    exit_status: int = 0
    busy_share: float = 0.9
    launches: list[Launch] = field(default_factory=list)

    @property
    def batch_id(self) -> str:
        """Return the id in accounting and in Lustre clients' requests."""
        return f"{self.number}.{BATCH_SERVER}" if self.cluster == site.CLUSTER else f"{self.number}"

    @property
    def label(self) -> str:
        """Return its label for the truth file."""
        return self.era.label if self.era else self.kind.value

    @property
    def clients(self) -> Ints:
        """Return its nodes as indices into `site.NIDS`."""
        first = 0 if self.cluster == site.CLUSTER else site.FIRST_ANALYSIS_CLIENT
        return self.nodes + first

    @property
    def batch_host(self) -> str:
        """Return the service node that runs the job's script: PBS's exec_host."""
        return BATCH_HOSTS[self.number % len(BATCH_HOSTS)]

    @property
    def batch_cname(self) -> str:
        """Return the name of the same node in syslog."""
        return BATCH_CNAMES[self.number % len(BATCH_CNAMES)]

    @property
    def cores(self) -> int:
        """Return the number of cores that the job holds."""
        return self.node_count * self.cores_per_node
