"""Cases, flags, their events, observations, the thresholds that a site sets, and back-tests."""

from ioportal.findings.models.case import (
    CURRENT,
    TO_TRIAGE,
    Case,
    CaseEvent,
    CaseQuerySet,
    case_joined,
)
from ioportal.findings.models.evidence import EvaluatedServer, JobEvidence, Observation
from ioportal.findings.models.flag import Flag, FlagEvent, FlagQuerySet
from ioportal.findings.models.thresholds import BackTest, ThresholdSet

__all__ = [
    "CURRENT",
    "TO_TRIAGE",
    "BackTest",
    "Case",
    "CaseEvent",
    "CaseQuerySet",
    "EvaluatedServer",
    "Flag",
    "FlagEvent",
    "FlagQuerySet",
    "JobEvidence",
    "Observation",
    "ThresholdSet",
    "case_joined",
]
