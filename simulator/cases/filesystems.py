"""The filesystems of the labelled set: what their servers can do, and who watches them."""

from dataclasses import dataclass

from simulator.clock import MINUTE_S


@dataclass(frozen=True)
class Filesystem:
    """A filesystem with one metadata and one object server, of one target each.

    Args:
        name: its name.
        version: of its metadata server.
        is_counted: whether its counters are read.
        is_traced: whether its metadata server writes an RPC trace.
    """

    name: str
    version: str
    is_counted: bool = True
    is_traced: bool = False

    @property
    def mds(self) -> str:
        """Return its metadata server."""
        return f"{self.name}-mds1"

    @property
    def oss(self) -> str:
        """Return its object server."""
        return f"{self.name}-oss1"

    @property
    def mdt(self) -> str:
        """Return its metadata target."""
        return f"{self.name}-MDT0000"

    @property
    def ost(self) -> str:
        """Return its object target."""
        return f"{self.name}-OST0000"


LARGE = Filesystem("atlas1", "2.8.0")  # strong, known by its counters only
SMALL = Filesystem("widow0", "2.15.3", is_traced=True)  # a storm makes everybody wait
UNREAD = Filesystem("widow1", "2.8.0")  # whose counters are not read for a while
MOUNTED_BY = (  # known by their traces only, mounted by machines that nobody registered, too
    Filesystem("widow2", "2.15.3", is_counted=False, is_traced=True),
    Filesystem("widow3", "2.15.3", is_counted=False, is_traced=True),
    Filesystem("widow4", "2.15.3", is_counted=False, is_traced=True),
)
ALL = (LARGE, SMALL, UNREAD, *MOUNTED_BY)

KEPT_S = 12 * MINUTE_S  # idle entries: longer than they are left unread, but for gaps
