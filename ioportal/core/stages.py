"""The stages in their order, and the schedule of all periodic tasks.

Each stage wakes the next one up; between wake-ups, it runs at its interval.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

ATTRIBUTE_PENDING: Final = "ioportal.ingest.tasks.attribute_pending"
OBSERVE: Final = "ioportal.findings.tasks.observe"
ROLL_UP: Final = "ioportal.telemetry.tasks.roll_up"
REFRESH_STATISTICS: Final = "ioportal.jobs.tasks.refresh_statistics"
EVALUATE: Final = "ioportal.findings.tasks.evaluate"
STAGES: Final = (ATTRIBUTE_PENDING, OBSERVE, ROLL_UP, REFRESH_STATISTICS, EVALUATE)

LOAD_UPLOADS: Final = "ioportal.experiments.tasks.load_uploads"
DISCARD_UPLOADS: Final = "ioportal.experiments.tasks.discard_uploads"
RETAIN: Final = "ioportal.load.tasks.retain"
REFRESH_BASELINES: Final = "ioportal.load.tasks.refresh_baselines"
RUN_BACK_TESTS: Final = "ioportal.findings.tasks.run_back_tests"
PLAN_MAILS: Final = "ioportal.alerts.tasks.plan_mails"
NOTIFY_CHANNELS: Final = "ioportal.alerts.tasks.notify_channels"
SEND_MAILS: Final = "ioportal.alerts.tasks.send_mails"
FOLLOW_UP: Final = "ioportal.alerts.tasks.follow_up"
LOOK_UP_ADDRESSES: Final = "ioportal.alerts.tasks.look_up_addresses"
WRITE_DIGESTS: Final = "ioportal.alerts.tasks.write_digests"
COPY_MAILS: Final = "ioportal.alerts.tasks.copy_mails"
READ_BOUNCES: Final = "ioportal.alerts.tasks.read_bounces"
WRITE_OWN_MAILS: Final = "ioportal.alerts.tasks.write_own_mails"
RETAIN_MAILS: Final = "ioportal.alerts.tasks.retain_mails"
MEASURE_MITIGATIONS: Final = "ioportal.alerts.tasks.measure_mitigations"

# Names of runs that show whether the schedule and the outward worker run.
MAIL_PLANNING: Final = "mail planning"
MAILS: Final = "mails"

# Tasks that connect to servers of others have a separate queue and worker: a server that does
# not answer must not delay the stages.
OUTWARD_QUEUE: Final = "outward"
ROUTES: Final = {
    task: {"queue": OUTWARD_QUEUE} for task in (SEND_MAILS, READ_BOUNCES, LOOK_UP_ADDRESSES)
}


def schedule(stage_interval: timedelta) -> dict[str, timedelta]:
    """Return the interval of each periodic task."""
    return {
        **dict.fromkeys(STAGES, stage_interval),
        LOAD_UPLOADS: stage_interval,
        DISCARD_UPLOADS: timedelta(minutes=10),
        RETAIN: timedelta(minutes=10),
        REFRESH_BASELINES: timedelta(minutes=30),
        RUN_BACK_TESTS: timedelta(minutes=1),
        PLAN_MAILS: timedelta(seconds=30),
        NOTIFY_CHANNELS: timedelta(seconds=30),
        SEND_MAILS: timedelta(seconds=10),
        FOLLOW_UP: timedelta(minutes=30),
        LOOK_UP_ADDRESSES: timedelta(minutes=1),
        WRITE_DIGESTS: timedelta(minutes=10),
        COPY_MAILS: timedelta(minutes=1),
        READ_BOUNCES: timedelta(minutes=2),
        WRITE_OWN_MAILS: timedelta(minutes=1),
        RETAIN_MAILS: timedelta(days=1),
        MEASURE_MITIGATIONS: timedelta(minutes=5),
    }
