"""All stages in this process, without a worker."""

from ioportal.findings import evaluation
from ioportal.ingest import attribution_stage
from ioportal.jobs import statistics
from ioportal.load import baselines
from ioportal.telemetry import rollups
from ioportal.telemetry.stage_runs import drain


def run_all() -> None:
    """Attribute, roll up, compute and evaluate until no pending rows are left."""
    drain(attribution_stage.attribute_pending)
    drain(rollups.roll_up)
    baselines.refresh()
    drain(statistics.refresh_statistics)
    evaluation.evaluate_current()
    drain(evaluation.evaluate_pending)
    evaluation.evaluate_current()  # expires cases of the past
