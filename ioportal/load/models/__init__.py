"""Baselines and incidents."""

from ioportal.load.models.baseline import Baseline, PinnedBaseline
from ioportal.load.models.incident import Incident, Report

__all__ = ["Baseline", "Incident", "PinnedBaseline", "Report"]
