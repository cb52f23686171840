"""The page of an experiment: its arms, its runs, and a section per kind of data."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.db.models import Window
from django.db.models.functions import RowNumber
from django.utils.html import format_html

from ioportal.experiments.models import Experiment
from ioportal.experiments.pages.experiment_runs import ExperimentRuns
from ioportal.experiments.pages.sections.access import AccessMethods
from ioportal.experiments.pages.sections.ior import Ior
from ioportal.experiments.pages.sections.lookups import LookUps
from ioportal.experiments.pages.sections.output import OutputPerformance
from ioportal.experiments.pages.sections.process_samples import ProcessSamples
from ioportal.experiments.pages.sections.runs import Runs
from ioportal.experiments.pages.sections.scaling import ScalingTests
from ioportal.experiments.pages.sections.storage_timing import StorageTiming
from ioportal.ingest.models import Reject
from ioportal.web.common.tables import Column, Table, lines
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

    from ioportal.experiments.models import Run, UploadQuerySet
    from ioportal.experiments.pages.sections.section import Section
    from ioportal.ingest.models import Segment

_SECTIONS: tuple[type[Section], ...] = (
    LookUps,
    StorageTiming,
    ProcessSamples,
    AccessMethods,
    ScalingTests,
    Ior,
    OutputPerformance,
    Runs,
)
_REJECTS_SHOWN = 5
_REJECT_LENGTH = 120
_LINES = ("lines", "accepted", "rejected", "irrelevant")


class ExperimentPage(ExperimentRuns):
    """One experiment as a user sees it."""

    @cached_property
    def can_edit(self) -> bool:
        """Whether the user may change it."""
        return Experiment.objects.editable_by(self.user).filter(pk=self.experiment.pk).exists()

    @cached_property
    def sections(self) -> list[Section]:
        """The sections with data."""
        sections = (section(self) for section in _SECTIONS)
        return [section for section in sections if section.is_present]

    @property
    def has_findings(self) -> bool:
        """Whether some section has a conclusion."""
        return any(section.findings for section in self.sections)

    @property
    def loading(self) -> UploadQuerySet:
        """Uploads that wait for a worker or are being loaded."""
        return self.experiment.uploads.waiting()

    @cached_property
    def files(self) -> Table[Segment]:
        """The loaded files, each with its first rejects."""
        number = Window(RowNumber(), partition_by="segment", order_by="line")
        of_file: dict[int, list[Reject]] = defaultdict(list)
        rejects = Reject.objects.filter(segment__experiment=self.experiment)
        for reject in rejects.annotate(number=number).filter(number__lte=_REJECTS_SHOWN):
            of_file[reject.segment_id].append(reject)
        files = self.experiment.segments.order_by("pk")
        columns: tuple[Column[Segment], ...] = (
            Column("name", "File", form=show.file_name),
            Column("format_label", "Format"),
            *(Column(name, name.capitalize(), unit="") for name in _LINES),
            Column("loaded_at", "Loaded"),
            Column(
                "rejects",
                "First rejects",
                lambda file: lines(map(_reject_text, of_file[file.pk])),
                css="wrap",
            ),
        )
        return Table("Loaded files", columns, list(files), is_folded=True)

    def export(self, section_name: str, name: str) -> Table[Any] | None:
        """Return an export of a section."""
        section = next((each for each in self.sections if each.name == section_name), None)
        return section.export(name) if section else None

    @property
    def about(self) -> dict[str, Any]:
        """Members of all JSON exports."""
        return {
            "experiment": self.experiment.name,
            "url": self.url,
            "arms": [arm.name for arm in self.arms],
            "simulated": self.experiment.simulated,
        }

    @property
    def facts(self) -> dict[str, Any]:
        """The experiment as one JSON object."""
        return {
            **self.about,
            "description": self.experiment.description,
            "findings": {section.name: section.findings for section in self.sections},
            "runs": [run_facts(run) for run in self.runs],
        }


def _reject_text(reject: Reject) -> SafeString:
    text = show.code(reject.text[:_REJECT_LENGTH])
    return format_html("line {}: {} {}", f"{reject.line:,}", show.visible(reject.reason), text)


def run_facts(run: Run) -> dict[str, Any]:
    """Return a run as one JSON object."""
    names = ("name", "state", "started_at", "scale", "events", "labels", "metrics", "steps")
    return {
        "id": run.pk,
        "arm": run.arm.name,
        **{name: getattr(run, name) for name in (*names, "counters", "markers", "recipe")},
        "job": run.job and {"cluster": run.job.cluster.name, "batch_id": run.job.display_id},
        "panda_id": run.panda_id,
    }
