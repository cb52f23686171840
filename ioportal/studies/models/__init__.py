"""Saved populations, mitigations, dismissed change points, and experiments."""

from ioportal.studies.models.experiment import (
    Arm,
    Attachment,
    Experiment,
    ExperimentQuerySet,
    PairTransfer,
    ProcessSample,
    Run,
    SystemCall,
    SystemCallWindow,
)
from ioportal.studies.models.mitigation import (
    DismissedChange,
    Mitigation,
    MitigationEvent,
    MitigationQuerySet,
)
from ioportal.studies.models.population import CacheEntry, Population, PopulationQuerySet

__all__ = [
    "Arm",
    "Attachment",
    "CacheEntry",
    "DismissedChange",
    "Experiment",
    "ExperimentQuerySet",
    "Mitigation",
    "MitigationEvent",
    "MitigationQuerySet",
    "PairTransfer",
    "Population",
    "PopulationQuerySet",
    "ProcessSample",
    "Run",
    "SystemCall",
    "SystemCallWindow",
]
