"""Defects of the portal are logged to standard error."""

import json
import subprocess
import sys
from unittest.mock import ANY

FAULT = """
import django
from django.core.handlers.exception import response_for_exception
from django.test import RequestFactory, override_settings

django.setup()
plain = {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
with override_settings(DEBUG=False, STORAGES=plain):
    try:
        1 / 0
    except ZeroDivisionError as error:
        answer = response_for_exception(RequestFactory().get("/jobs/1/"), error)
print(answer.status_code)
"""


def test_a_fault_is_logged_to_stderr_with_its_traceback():
    program = subprocess.run(
        [sys.executable, "-c", FAULT], capture_output=True, text=True, check=False
    )

    assert program.stdout == "500\n"
    assert "Internal Server Error: /jobs/1/" in program.stderr
    assert "ZeroDivisionError: division by zero" in program.stderr


EVENT = r"""
import django, structlog

django.setup()
structlog.get_logger().warning("log_in_failed", user="a\x1b[2J\u202e\n{}", address="::1")
"""


def test_an_event_with_any_text_is_one_line_of_json():
    program = subprocess.run(
        [sys.executable, "-c", EVENT], capture_output=True, text=True, check=True
    )

    assert program.stdout == ""
    [line] = program.stderr.splitlines()
    assert line.isascii()
    assert json.loads(line) == {
        "at": ANY,
        "level": "warning",
        "event": "log_in_failed",
        "user": "a\x1b[2J\u202e\n{}",
        "address": "::1",
    }
