"""Stored shares of an MDT get two significant digits: the rest are others' operations."""

from django.db import migrations

_ROUND = """
UPDATE jobs_jobstatistics SET largest_target_share = round(
    largest_target_share::numeric, 1 - floor(log(largest_target_share::numeric))::int
)
WHERE largest_target_share > 0
"""


class Migration(migrations.Migration):
    dependencies = [("jobs", "0002_named_jobs")]

    operations = [migrations.RunSQL(_ROUND, migrations.RunSQL.noop)]
