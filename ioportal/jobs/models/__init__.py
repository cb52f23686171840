"""Batch jobs, their statistics, and PanDA jobs."""

from ioportal.jobs.models.job import Allocation, Job, JobQuerySet, Launch
from ioportal.jobs.models.statistics import DirtyEvidence, DirtyStatistics, JobStatistics
from ioportal.jobs.models.workload import WorkloadJob, WorkloadJobQuerySet

__all__ = [
    "Allocation",
    "DirtyEvidence",
    "DirtyStatistics",
    "Job",
    "JobQuerySet",
    "JobStatistics",
    "Launch",
    "WorkloadJob",
    "WorkloadJobQuerySet",
]
