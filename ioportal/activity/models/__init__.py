"""Baselines and incidents."""

from ioportal.activity.models.baseline import Baseline, PinnedBaseline
from ioportal.activity.models.incident import Incident, Report

__all__ = ["Baseline", "Incident", "PinnedBaseline", "Report"]
