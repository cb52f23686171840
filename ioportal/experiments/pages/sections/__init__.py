"""The sections of an experiment's page: one per kind of data, in the order of the page."""

from ioportal.experiments.pages.sections.access import AccessMethods
from ioportal.experiments.pages.sections.ior import Ior
from ioportal.experiments.pages.sections.lookups import LookUps
from ioportal.experiments.pages.sections.output import OutputPerformance
from ioportal.experiments.pages.sections.process_samples import ProcessSamples
from ioportal.experiments.pages.sections.runs import Runs
from ioportal.experiments.pages.sections.scaling import ScalingTests
from ioportal.experiments.pages.sections.section import Section
from ioportal.experiments.pages.sections.storage_timing import StorageTiming

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
