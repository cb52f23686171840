"""The view and functions that name the jobs of source job ids."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial"), ("site", "0001_initial")]
    operations = [migrations.RunSQL(Path(__file__).with_name("named_jobs.sql").read_text())]
