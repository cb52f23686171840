"""The task queue; `ioportal.core.stages` has the stages and the schedule.

Pending work is stored in the database; a message only avoids the wait for the next beat. Lost,
duplicate or reordered messages change nothing.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog
from celery import Celery, signals
from django.conf import settings
from django.db import connection
from kombu.exceptions import OperationalError

from ioportal.core.postgres.advisory_locks import SUSPENDED_AFTER
from ioportal.core.stages import STAGES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ioportal.settings")

log = structlog.get_logger()

# Requests never wait for the broker: one thread sends, and queues each stage at most once.
_sender = ThreadPoolExecutor(1, thread_name_prefix="wake-up")
_unsent: set[str] = set()

app = Celery("ioportal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


def wake(stage: str) -> None:
    """Wake a stage up; without a broker it runs at its next beat."""
    if stage not in _unsent:
        _unsent.add(stage)
        _sender.submit(_send, stage)


def _send(stage: str) -> None:
    _unsent.discard(stage)  # rows committed from now on need another message
    try:
        app.send_task(stage, retry=False, expires=settings.WAKE_UP_EXPIRES_S)
    except OperationalError as error:
        log.warning("wake_up_lost", stage=stage, error=str(error))


@signals.worker_process_init.connect
def limit_waits(**_: Any) -> None:
    """Limit how long a worker waits for a lock: the process that holds it may be suspended."""
    connection.lock_timeout_s = SUSPENDED_AFTER.total_seconds()  # type: ignore[attr-defined]  # ioportal.core.postgres


@signals.task_success.connect
def wake_next(sender: Any, result: Any = None, **_: Any) -> None:
    """Wake up the next stage after the success of a stage, and the same one if rows are left."""
    if sender.name in STAGES and result:
        wake(sender.name)
    if sender.name in STAGES[:-1]:
        wake(STAGES[STAGES.index(sender.name) + 1])
