"""Indexes for charging by the job ids that telemetry carries."""

from django.db import migrations

CREATE = """
CREATE INDEX rpcwindow_source_job ON telemetry_rpcwindow (source_job_id, start)
    WHERE source_job_id <> 0;
-- Ids that name no job, or several: of jobs' rows the ids are folded.
CREATE INDEX chargedrpc_source_job ON telemetry_chargedrpc (source_job_id, start)
    WHERE source_job_id <> 0 AND nid_id = 0;
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0003_service_ids_and_coverage")]
    operations = [
        migrations.RunSQL(
            CREATE, "DROP INDEX chargedrpc_source_job; DROP INDEX rpcwindow_source_job"
        ),
    ]
