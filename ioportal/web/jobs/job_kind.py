"""The kind of a job for capacity pages: its user, its application name, and its servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import polars as pl
from django.urls import reverse

from ioportal.jobs.application_names import application_name
from ioportal.site.models import Server

if TYPE_CHECKING:
    from ioportal.jobs.models import Job


@dataclass(frozen=True)
class JobKind:
    """Jobs like another job: by the same user, with the same application name."""

    job: Job
    application: str
    servers: list[Server]  # metadata servers of the filesystems of its cluster

    @classmethod
    def of_job(cls, job: Job) -> JobKind:
        """Return the kind of a job."""
        name = pl.select(application_name(pl.lit(job.name))).item()
        servers = Server.objects.filter(
            kind=Server.Kind.MDS, filesystem__clusters=job.cluster_id
        ).select_related("filesystem")
        return cls(job, name, list(servers.order_by("filesystem__name", "name")))

    def address(self, server: Server) -> str:
        """Return the address of the capacity of a server for more jobs of the kind."""
        query = urlencode({"user": self.job.owner, "application": self.application})
        return f"{reverse('server_capacity', args=[server.name])}?{query}"

    @property
    def links(self) -> list[tuple[Server, str]]:
        """Servers with their addresses."""
        return [(server, self.address(server)) for server in self.servers]
