"""Events of flags that moved between cases."""

from django.db import migrations, models

_KINDS = (
    "opened",
    "suppressed",
    "escalated",
    "acknowledged",
    "muted",
    "reopened",
    "assigned",
    "commented",
    "resolved",
    "moved",
)


class Migration(migrations.Migration):
    dependencies = [("flags", "0010_group_subjects")]
    operations = [
        migrations.AlterField(
            "caseevent",
            "kind",
            models.CharField(max_length=16, choices=[(kind, kind) for kind in _KINDS]),
        )
    ]
