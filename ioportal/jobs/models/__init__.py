"""What a site has and runs."""

from ioportal.jobs.models.baseline import Baseline, PinnedBaseline
from ioportal.jobs.models.incident import Incident, Report
from ioportal.jobs.models.job import Allocation, Job, JobQuerySet, Launch
from ioportal.jobs.models.person import UserAccount
from ioportal.jobs.models.population import CacheEntry, Population
from ioportal.jobs.models.site import (
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
from ioportal.jobs.models.source import Format, Source
from ioportal.jobs.models.statistics import JobStatistics, StaleEvidence, StaleStatistics
from ioportal.jobs.models.workload import WorkloadJob, WorkloadJobQuerySet

__all__ = [
    "Allocation",
    "Baseline",
    "CacheEntry",
    "Cluster",
    "Counter",
    "Filesystem",
    "Format",
    "Incident",
    "Job",
    "JobQuerySet",
    "JobStatistics",
    "Launch",
    "Nid",
    "Node",
    "PinnedBaseline",
    "Population",
    "Report",
    "Server",
    "ServerVersion",
    "Service",
    "Source",
    "SourceJobId",
    "StaleEvidence",
    "StaleStatistics",
    "Target",
    "UserAccount",
    "WorkloadJob",
    "WorkloadJobQuerySet",
]
