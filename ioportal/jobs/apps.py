"""The app of jobs, their statistics and their PanDA jobs."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """The app."""

    name = "ioportal.jobs"
