"""Impact of groups of jobs; shares of work rather than of service time."""

from django.db import migrations, models

_RENAMES = (("work_us", "all_work_us"), ("service_us", "work_us"))


def _rename(old: str, new: str) -> str:
    return f"ALTER TABLE telemetry_impactwindow RENAME COLUMN {old} TO {new};"


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0004_latencies")]
    operations = [
        migrations.CreateModel(
            name="JobGroup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.SmallIntegerField(
                        choices=[(11, "user"), (12, "project"), (13, "application")]
                    ),
                ),
                ("text", models.CharField(max_length=128)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("kind", "text"), name="job_group")],
            },
        ),
        migrations.RunSQL(
            "".join(_rename(old, new) for old, new in _RENAMES),
            reverse_sql="".join(_rename(new, old) for old, new in reversed(_RENAMES)),
        ),
    ]
