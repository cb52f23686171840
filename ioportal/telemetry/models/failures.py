"""Failed runs of stages, with advice by SQLSTATE."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

_ERROR_CHARACTERS = 4_000


_DEFAULT_REMEDY = (
    "The stage retries automatically. If it continues to fail, find the traceback in the worker's "
    "log and report it."
)
_REMEDIES = {  # by SQLSTATE
    "53100": "Free space on the database's disk.",
    "53200": "Give the database server more memory, or lower its work_mem.",
    "53300": "Raise max_connections of the database, or run fewer workers and threads.",
    "42501": "Make the role of DATABASE_URL the owner of all tables of the database.",
    "42703": "Run “manage.py migrate” and restart the workers.",
    "42P01": "Run “manage.py migrate” and restart the workers.",
    "57014": "Raise statement_timeout for the role of DATABASE_URL.",
}


class StageFailureManager(models.Manager["StageFailure"]):
    """Records failures."""

    def record(self, stage: str, error: Exception) -> None:
        """Store a failed run of a stage; consecutive failures are counted."""
        cause: BaseException | None = error
        while cause and not (sqlstate := getattr(cause, "sqlstate", None)):
            cause = cause.__cause__
        latest = {
            "failed_at": timezone.now(),
            "error": f"{type(error).__name__}: {str(error).strip()}"[:_ERROR_CHARACTERS],
            "sqlstate": sqlstate or "",
        }
        failure, is_first = self.get_or_create(stage=stage, defaults=latest)
        if not is_first:
            self.filter(pk=failure.pk).update(runs=models.F("runs") + 1, **latest)


class StageFailure(models.Model):
    """A stage whose latest runs failed; removed when a run succeeds."""

    stage = models.CharField(max_length=63, unique=True)
    since = models.DateTimeField(auto_now_add=True)
    failed_at = models.DateTimeField()  # the latest failure
    runs = models.IntegerField(default=1)  # consecutive failures
    error = models.TextField()
    sqlstate = models.CharField(max_length=5, blank=True)  # "": no database error

    objects = StageFailureManager()

    def __str__(self) -> str:
        return f"{self.stage}: {self.error}"

    @property
    def remedy(self) -> str:
        """Advice for an administrator."""
        return _REMEDIES.get(self.sqlstate, _DEFAULT_REMEDY)
