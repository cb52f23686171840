"""What rules found, by which limits, and what was done about it."""

from ioportal.flags.models.backtest import BackTest
from ioportal.flags.models.evidence import JobEvidence
from ioportal.flags.models.flag import Flag, FlagEvent, FlagQuerySet
from ioportal.flags.models.limits import LimitSet

__all__ = ["BackTest", "Flag", "FlagEvent", "FlagQuerySet", "JobEvidence", "LimitSet"]
