from datetime import timedelta

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0007_cacheentry"),
    ]

    operations = [
        migrations.AddField(
            model_name="target",
            name="job_cleanup_interval",
            field=models.DurationField(
                default=timedelta(minutes=10),
                help_text="Its parameter of that name, in seconds: it drops counters of jobs that "
                "idled so long. Reads no further apart than this miss nothing.",
                validators=[
                    MinValueValidator(timedelta(seconds=1)),
                    MaxValueValidator(timedelta(days=3_650)),
                ],
            ),
        ),
    ]
