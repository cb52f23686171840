"""Batch jobs, their statistics, and PanDA jobs."""

from ioportal.jobs.models.job import Allocation, Job, JobQuerySet, Launch
from ioportal.jobs.models.panda_job import WorkloadJob, WorkloadJobQuerySet
from ioportal.jobs.models.statistics import DirtyEvidence, DirtyStatistics, JobStatistics

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
