"""Batch jobs, their statistics, PanDA jobs, and saved populations."""

from ioportal.jobs.models.job import (
    Allocation,
    Job,
    JobQuerySet,
    Launch,
    WorkloadJob,
    WorkloadJobQuerySet,
)
from ioportal.jobs.models.population import CacheEntry, Population, PopulationQuerySet
from ioportal.jobs.models.statistics import DirtyEvidence, DirtyStatistics, JobStatistics

__all__ = [
    "Allocation",
    "CacheEntry",
    "DirtyEvidence",
    "DirtyStatistics",
    "Job",
    "JobQuerySet",
    "JobStatistics",
    "Launch",
    "Population",
    "PopulationQuerySet",
    "WorkloadJob",
    "WorkloadJobQuerySet",
]
