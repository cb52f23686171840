"""The sections of an experiment's page: one per kind of data, in the order of the page."""

from ioportal.web.experiments.sections.access import AccessMethods
from ioportal.web.experiments.sections.ior import Ior
from ioportal.web.experiments.sections.lookups import LookUps
from ioportal.web.experiments.sections.output import OutputPerformance
from ioportal.web.experiments.sections.process_samples import ProcessSamples
from ioportal.web.experiments.sections.runs import Runs
from ioportal.web.experiments.sections.scaling import ScalingTests
from ioportal.web.experiments.sections.section import Section
from ioportal.web.experiments.sections.storage_timing import StorageTiming

SECTIONS: tuple[type[Section], ...] = (
    LookUps,
    StorageTiming,
    ProcessSamples,
    AccessMethods,
    ScalingTests,
    Ior,
    OutputPerformance,
    Runs,
)
