"""The rows that benches insert by SQL fit the tables."""

from datetime import UTC, datetime

import pytest
from django.db import connection

from bench import centre, evaluation, overview, portal
from ioportal.jobs.models import Job, JobStatistics
from ioportal.site.models import SourceJobId
from tests import loading

BEGIN, END = datetime(2024, 6, 1, tzinfo=UTC), datetime(2024, 6, 3, tzinfo=UTC)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("site", "statements", "values"),
    [
        (centre.SITE, centre.STATEMENTS, {"jobs": 50, "began": BEGIN, "ended": END}),
        (
            portal.TWO_SERVERS,
            evaluation.STATEMENTS,
            {"jobs": 50, "began": BEGIN, "now": END},
        ),
        (portal.TWO_SERVERS, overview.STATEMENTS, {"start": BEGIN, "end": END}),
    ],
    ids=["centre", "evaluation", "overview"],
)
def test_benches_insert_their_jobs(tmp_path, site, statements, values):
    loading.register(tmp_path, site)
    portal.set_defaults(Job, JobStatistics, SourceJobId)

    with connection.cursor() as cursor:
        cursor.execute(statements.read_text(), values)

    assert Job.objects.count() >= 50
