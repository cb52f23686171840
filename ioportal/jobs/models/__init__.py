"""Jobs, their statistics and their PanDA jobs."""

from ioportal.jobs.models.job import Allocation, Job, JobQuerySet, Launch
from ioportal.jobs.models.statistics import JobStatistics, StaleEvidence, StaleStatistics
from ioportal.jobs.models.workload import WorkloadJob, WorkloadJobQuerySet

__all__ = [
    "Allocation",
    "Job",
    "JobQuerySet",
    "JobStatistics",
    "Launch",
    "StaleEvidence",
    "StaleStatistics",
    "WorkloadJob",
    "WorkloadJobQuerySet",
]
