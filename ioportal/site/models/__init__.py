"""Clusters, filesystems, servers, nodes, sources and user accounts."""

from ioportal.site.models.infrastructure import (
    Cluster,
    Counter,
    Filesystem,
    Nid,
    Node,
    Server,
    ServerVersion,
    Service,
    SourceJobId,
    Target,
)
from ioportal.site.models.person import UserAccount
from ioportal.site.models.source import Source

__all__ = [
    "Cluster",
    "Counter",
    "Filesystem",
    "Nid",
    "Node",
    "Server",
    "ServerVersion",
    "Service",
    "Source",
    "SourceJobId",
    "Target",
    "UserAccount",
]
