"""Rows of mitigations for the tests of pages."""

from datetime import timedelta

from ioportal.studies.models import Mitigation
from tests.web.conftest import NOON

DAY = timedelta(days=1)
HOSTILE = "</script><b>x</b>\u202e"


def log(**facts):
    """Log a code fix of a quarter past noon."""
    return Mitigation.objects.create(
        **{"title": "Fix", "kind": "code", "started_at": NOON + DAY / 96, **facts}
    )
