"""The filesystems of the labelled set, with their capacity and observation."""

from dataclasses import dataclass

from simulator.clock import MINUTE_S


@dataclass(frozen=True)
class Filesystem:
    """A filesystem with one metadata and one object server, of one target each.

    Args:
        name: name.
        version: version of its metadata server.
        is_counted: whether its counters are read.
        is_traced: whether its metadata server writes an RPC trace.
    """

    name: str
    version: str
    is_counted: bool = True
    is_traced: bool = False

    @property
    def mds(self) -> str:
        """Return the metadata server."""
        return f"{self.name}-mds1"

    @property
    def oss(self) -> str:
        """Return the object server."""
        return f"{self.name}-oss1"

    @property
    def mdt(self) -> str:
        """Return the metadata target."""
        return f"{self.name}-MDT0000"

    @property
    def ost(self) -> str:
        """Return the object target."""
        return f"{self.name}-OST0000"


LARGE = Filesystem("atlas1", "2.8.0")  # large capacity, observed by counters only
SMALL = Filesystem("widow0", "2.15.3", is_traced=True)  # small capacity
UNREAD = Filesystem("widow1", "2.8.0")  # its counters are not read for some time
MOUNTED_BY = (  # observed by traces only, also mounted by unregistered machines
    Filesystem("widow2", "2.15.3", is_counted=False, is_traced=True),
    Filesystem("widow3", "2.15.3", is_counted=False, is_traced=True),
    Filesystem("widow4", "2.15.3", is_counted=False, is_traced=True),
)
ALL = (LARGE, SMALL, UNREAD, *MOUNTED_BY)

KEPT_S = 12 * MINUTE_S  # idle entries: longer than the poll interval, except in gaps
