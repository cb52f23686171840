"""The app of clusters, jobs and their statistics."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """Django's handle on the app."""

    name = "ioportal.jobs"
    verbose_name = "Site"  # on the registration pages
