"""The service times of RPCs by second of arrival."""

from django.db import migrations, models

# 0 in seconds attributed before: time blocked on locks is unknown there.
_ADD = """
ALTER TABLE telemetry_attributedsecond ADD service_us double precision NOT NULL DEFAULT 0;
ALTER TABLE telemetry_attributedsecond ALTER service_us DROP DEFAULT
"""
_DROP = "ALTER TABLE telemetry_attributedsecond DROP service_us"


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0025_seconds")]
    operations = [
        migrations.RunSQL(
            _ADD,
            reverse_sql=_DROP,
            state_operations=[
                migrations.AddField("AttributedSecond", "service_us", models.FloatField()),
            ],
        ),
    ]
