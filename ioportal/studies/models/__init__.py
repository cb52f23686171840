"""Saved populations, mitigations, and dismissed change points."""

from ioportal.studies.models.mitigation import (
    DismissedChange,
    Mitigation,
    MitigationEvent,
    MitigationQuerySet,
)
from ioportal.studies.models.population import CacheEntry, Population, PopulationQuerySet

__all__ = [
    "CacheEntry",
    "DismissedChange",
    "Mitigation",
    "MitigationEvent",
    "MitigationQuerySet",
    "Population",
    "PopulationQuerySet",
]
