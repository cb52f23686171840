"""Private populations are deleted with their owner."""

from django.conf import settings
from django.db import migrations, models

import ioportal.jobs.models.population


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0004_job_job_cluster_ended"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="population",
            name="owner",
            field=models.ForeignKey(
                null=True,
                on_delete=ioportal.jobs.models.population.keep_if_shared,
                related_name="populations",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
