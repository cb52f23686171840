"""Mitigations and dismissed change points."""

from ioportal.changes.models.mitigation import (
    DismissedChange,
    Mitigation,
    MitigationEvent,
    MitigationQuerySet,
)

__all__ = ["DismissedChange", "Mitigation", "MitigationEvent", "MitigationQuerySet"]
