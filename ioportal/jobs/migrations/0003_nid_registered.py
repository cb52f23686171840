"""Which NIDs were told their nodes, and which follow a rule."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0002_namedjob"),
    ]

    operations = [
        migrations.AddField(
            model_name="nid",
            name="registered",
            field=models.BooleanField(default=False, editable=False),
        ),
    ]
