import django.core.serializers.json
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0021_lock_enqueues")]

    operations = [
        migrations.AddField(
            model_name="incident",
            name="figures",
            field=models.JSONField(
                editable=False, encoder=django.core.serializers.json.DjangoJSONEncoder, null=True
            ),
        ),
    ]
