"""The hypertables, in Timescale's own DDL."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0001_initial")]
    operations = [
        migrations.RunSQL(Path(__file__).with_name("hypertables.sql").read_text()),
    ]
