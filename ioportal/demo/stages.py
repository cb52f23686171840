"""All stages in this process, without a worker."""

from ioportal.activity import baselines
from ioportal.flags import evaluation
from ioportal.ingest import attribution_stage
from ioportal.jobs import statistics
from ioportal.stage_runs import drain
from ioportal.telemetry import rollups


def run_all() -> None:
    """Attribute, roll up, compute and evaluate until no pending rows are left."""
    drain(attribution_stage.attribute_pending)
    drain(rollups.roll_up)
    baselines.refresh()
    drain(statistics.refresh_statistics)
    evaluation.evaluate_current()
    drain(evaluation.evaluate_pending)
    evaluation.evaluate_current()  # expires cases of the past
