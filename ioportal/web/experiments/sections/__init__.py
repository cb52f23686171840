"""The sections of an experiment's page: one per kind of data, in the order of the page."""

from ioportal.web.experiments.sections.access import AccessMethods
from ioportal.web.experiments.sections.ior import Ior
from ioportal.web.experiments.sections.lookups import LookUps
from ioportal.web.experiments.sections.output import OutputPerformance
from ioportal.web.experiments.sections.runs import Runs
from ioportal.web.experiments.sections.scaling import ScalingTests
from ioportal.web.experiments.sections.section import Section

SECTIONS: tuple[type[Section], ...] = (
    LookUps,
    AccessMethods,
    ScalingTests,
    Ior,
    OutputPerformance,
    Runs,
)
