"""The portal's settings, with static files as they are: nothing is collected for tests."""

from ioportal.settings import *  # noqa: F403

STORAGES["staticfiles"] = {  # noqa: F405
    "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
}
