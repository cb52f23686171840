"""Whether the impact of a job was estimated."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("flags", "0012_application_texts")]
    operations = [
        migrations.AddField(
            model_name="jobevidence",
            name="impact_is_estimated",
            field=models.BooleanField(null=True),
        ),
    ]
