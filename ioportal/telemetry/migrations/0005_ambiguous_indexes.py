"""What is ambiguous is little, and is looked for whenever a job's statistics are computed."""

from django.db import migrations

INDEXES = {
    "chargedrpc_ambiguous": "telemetry_chargedrpc (start)",
    "iowindow_ambiguous": "telemetry_iowindow (start)",
}


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0004_source_job_indexes")]
    operations = [
        migrations.RunSQL(
            f"CREATE INDEX {name} ON {columns} WHERE kind = 5",
            reverse_sql=f"DROP INDEX {name}",
        )
        for name, columns in INDEXES.items()
    ]
