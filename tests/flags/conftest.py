"""The stages after charging, as a worker would run them."""

import pytest

from ioportal.flags import judging
from ioportal.flags.models import Flag
from ioportal.jobs import statistics
from ioportal.stages import drain
from ioportal.telemetry import rollups


@pytest.fixture
def judge():
    """Run the stages before, and judge; return the unresolved flags by rule and subject."""

    def run():
        drain(statistics.refresh_statistics)
        drain(rollups.roll_up)
        drain(judging.judge_pending)
        judging.judge_standing()
        flags = Flag.objects.unresolved().select_related("job")
        return {
            (flag.rule, flag.job.batch_id if flag.job else flag.subject): flag for flag in flags
        }

    return run
