"""A task that a worker's forked child runs: it parses, which makes polars start its threads."""

from celery import shared_task
from django.core.management import call_command


@shared_task
def ingest(*arguments):
    """Run ``manage.py ingest``."""
    call_command("ingest", *arguments)
