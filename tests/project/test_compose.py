"""docker-compose.yml agrees with the settings, and runs the portal with few rights."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PROJECT = Path(__file__).parents[2]
PORTAL_SERVICES = ("migrate", "web", "worker", "beat")
SHOW_SETTINGS = """
from ioportal import settings

database = settings.DATABASES["default"]
print(settings.SECRET_KEY, database["HOST"], database["PASSWORD"], settings.CELERY_BROKER_URL)
"""


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load((PROJECT / "docker-compose.yml").read_text())["services"]


def with_defaults(environment):
    """The environment as compose fills it in on a machine that sets nothing."""
    return {name: re.sub(r"\$\{\w+:-(.*?)\}", r"\1", value) for name, value in environment.items()}


@pytest.mark.parametrize("name", PORTAL_SERVICES)
def test_the_settings_take_what_compose_gives_them(services, name, tmp_path):
    (tmp_path / "secret_key").write_text("a-key")
    (tmp_path / "db_password").write_text("a-password")
    environment = {
        variable: value.replace("/run/secrets", str(tmp_path))
        for variable, value in with_defaults(services[name]["environment"]).items()
    }

    shown = subprocess.run(
        [sys.executable, "-c", SHOW_SETTINGS],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=True,
    )

    assert shown.stdout.split() == ["a-key", "db", "a-password", "redis://valkey:6379/0"]


@pytest.mark.parametrize("name", PORTAL_SERVICES)
def test_compose_sets_no_variable_that_the_settings_do_not_read(services, name):
    read = (PROJECT / "ioportal/settings.py").read_text()

    for variable in services[name]["environment"]:
        assert f'"{re.sub("(_PASSWORD)?_FILE$", "", variable)}"' in read


@pytest.mark.parametrize("name", PORTAL_SERVICES)
def test_the_portal_runs_with_no_rights_it_does_not_need(services, name):
    service = services[name]

    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert "USER ioportal" in (PROJECT / "Dockerfile").read_text()


def test_every_lasting_service_says_whether_it_is_well(services):
    lasting = services.keys() - {"migrate"}

    assert lasting == {"db", "valkey", "web", "worker", "beat"}
    assert all("healthcheck" in services[name] for name in lasting)


def test_foreign_images_are_pinned_by_version(services):
    for name in ("db", "valkey"):
        assert re.search(r":\d+\.\d+\.\d+-\w+$", services[name]["image"])
