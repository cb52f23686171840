"""Cases, flags, their events, observations, the thresholds that a site sets, and back-tests."""

from ioportal.flags.models.back_test import BackTest
from ioportal.flags.models.case import CURRENT, TO_TRIAGE, Case, CaseEvent, CaseQuerySet
from ioportal.flags.models.evidence import JobEvidence
from ioportal.flags.models.flag import Flag, FlagEvent, FlagQuerySet
from ioportal.flags.models.observation import Observation
from ioportal.flags.models.threshold_set import ThresholdSet

__all__ = [
    "CURRENT",
    "TO_TRIAGE",
    "BackTest",
    "Case",
    "CaseEvent",
    "CaseQuerySet",
    "Flag",
    "FlagEvent",
    "FlagQuerySet",
    "JobEvidence",
    "Observation",
    "ThresholdSet",
]
