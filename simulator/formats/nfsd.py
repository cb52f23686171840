"""Counters of an NFS server since it booted: ``/proc/net/rpc/nfsd``."""

from dataclasses import dataclass

# The procedures of NFS version 3, in the order of their numbers.
_PROCEDURES = (
    *("null", "getattr", "setattr", "lookup", "access", "readlink", "read", "write", "create"),
    *("mkdir", "symlink", "mknod", "remove", "rmdir", "rename", "link", "readdir", "readdirplus"),
    *("fsstat", "fsinfo", "pathconf", "commit"),
)
_THREADS = 64
_READ_BYTES = 14_300  # on average


@dataclass(frozen=True)
class Calls:
    """Calls by procedure; the rest are zero."""

    lookup: int
    getattr: int
    access: int
    read: int
    readdirplus: int

    @property
    def total(self) -> int:
        """Return all calls."""
        return self.lookup + self.getattr + self.access + self.read + self.readdirplus


def text(calls: Calls) -> str:
    """Return the file's content."""
    counts = " ".join(str(getattr(calls, name, 0)) for name in _PROCEDURES)
    idle = " ".join(["0.000"] * 10)
    return (
        f"rc 0 {calls.total // 9_000} {calls.total}\n"
        "fh 0 0 0 0 0\n"
        f"io {calls.read * _READ_BYTES} 0\n"
        f"th {_THREADS} 0 {idle}\n"
        f"ra {_THREADS * 2} {calls.read} 0 0 0 0 0 0 0 0 0 {calls.read // 50}\n"
        f"net {calls.total} 0 {calls.total} 211\n"
        f"rpc {calls.total} 0 0 0 0\n"
        f"proc3 {len(_PROCEDURES)} {counts}\n"
    )
