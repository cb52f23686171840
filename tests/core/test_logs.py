"""Faults in the log."""

import logging
import logging.config

from django.conf import settings
from django.db import OperationalError


def logged(capsys, error):
    logging.config.dictConfig(settings.LOGGING)
    try:
        raise error
    except type(error):
        logging.getLogger("django.request").exception("%s: %s", "Gone", "/jobs/")
    return capsys.readouterr().err.splitlines()


def test_an_outage_of_the_database_is_one_line_per_request(capsys):
    [line] = logged(capsys, OperationalError("connection refused\nIs the server running?"))

    assert line.endswith("ERROR django.request: Gone: /jobs/: connection refused")


def test_any_other_fault_is_logged_with_its_traceback(capsys):
    lines = logged(capsys, ValueError("bad value"))

    assert lines[-1] == "ValueError: bad value"
    assert "Traceback (most recent call last):" in lines
