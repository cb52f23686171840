"""Projects and applications as subjects of flags."""

from django.db import migrations, models

_SUBJECTS = ("job", "user", "project", "application", "host", "filesystem")


class Migration(migrations.Migration):
    dependencies = [("flags", "0002_cases")]
    operations = [
        migrations.AlterField(
            model,
            "subject_kind",
            models.CharField(max_length=16, choices=[(kind, kind) for kind in _SUBJECTS]),
        )
        for model in ("case", "flag")
    ]
