"""A task that parses files with polars, whose threads must start in a forked child."""

from celery import shared_task
from django.core.management import call_command


@shared_task
def ingest(*arguments):
    """Run ``manage.py ingest``."""
    call_command("ingest", *arguments)
