"""Clusters, filesystems, servers, nodes, sources, user accounts and projects."""

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
from ioportal.site.models.person import Project, UserAccount
from ioportal.site.models.source import Source

__all__ = [
    "Cluster",
    "Counter",
    "Filesystem",
    "Nid",
    "Node",
    "Project",
    "Server",
    "ServerVersion",
    "Service",
    "Source",
    "SourceJobId",
    "Target",
    "UserAccount",
]
