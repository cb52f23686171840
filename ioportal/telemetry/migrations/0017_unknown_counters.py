"""Counters that no interval of ten minutes told had been rolled up as the largest number."""

from django.db import migrations

from collectors.tables import COUNTERS

MEND = """
UPDATE telemetry_iotenminutes SET {values} WHERE {wrong}
""".format(
    values=", ".join(f'"{name}" = nullif("{name}", 9223372036854775807)' for name in COUNTERS),
    wrong=" OR ".join(f'"{name}" = 9223372036854775807' for name in COUNTERS),
)


class Migration(migrations.Migration):
    dependencies = [
        ("telemetry", "0016_baseline_periods"),
    ]

    operations = [
        migrations.RunSQL(MEND, migrations.RunSQL.noop),
    ]
