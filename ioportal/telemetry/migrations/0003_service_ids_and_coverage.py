"""Room for any number of services; the coverage of a segment by an index."""

from django.db import migrations, models

WIDER = """
ALTER TABLE telemetry_rpcwindow ALTER COLUMN service_id TYPE integer;
ALTER TABLE telemetry_chargedrpc ALTER COLUMN service_id TYPE integer;
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0002_models")]
    operations = [
        migrations.RunSQL(WIDER, migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name="coverage",
            index=models.Index(fields=["segment_id"], name="coverage_segment"),
        ),
    ]
