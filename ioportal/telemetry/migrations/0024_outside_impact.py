"""The waiting of pings and of requests outside jobs, apart from that of users."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0023_first_polls")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE telemetry_impactwindow ADD COLUMN outside_us bigint;",
            reverse_sql="ALTER TABLE telemetry_impactwindow DROP COLUMN outside_us;",
        ),
    ]
