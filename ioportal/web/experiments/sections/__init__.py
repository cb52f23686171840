"""The sections of an experiment's page: one per kind of data, in the order of the page."""

from ioportal.web.experiments.sections.lookups import LookUps
from ioportal.web.experiments.sections.runs import Runs
from ioportal.web.experiments.sections.section import Section

SECTIONS: tuple[type[Section], ...] = (LookUps, Runs)
