"""docker-compose.yml agrees with the settings, and runs the portal with few privileges."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from scripts import serve

PROJECT = Path(__file__).parents[2]
PORTAL_SERVICES = ("migrate", "web", "worker", "outward-worker", "beat")
SETTINGS, README, EXAMPLE = (
    PROJECT / name for name in ("ioportal/settings.py", "README.md", "deploy/ioportal.env")
)
VARIABLE = re.compile(r"`((?:IOPORTAL|DATABASE)_\w+)`")
FIXED = {
    "DATABASE_URL",
    "DATABASE_URL_PASSWORD_FILE",
    "IOPORTAL_BROKER_URL",
    "IOPORTAL_SECRET_KEY_FILE",
    "IOPORTAL_DATABASE_FOLDERS",
}
SHOW_SETTINGS = """
from ioportal import settings

database = settings.DATABASES["default"]
print(settings.SECRET_KEY, database["HOST"], database["PASSWORD"], settings.CELERY_BROKER_URL)
"""


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load((PROJECT / "docker-compose.yml").read_text())["services"]


@pytest.mark.parametrize("name", PORTAL_SERVICES)
def test_the_settings_accept_the_environment_of_compose(services, name, tmp_path):
    (tmp_path / "secret_key").write_text("a-key")
    (tmp_path / "db_password").write_text("a-password")
    environment = {
        variable: value.replace("/run/secrets", str(tmp_path)).replace("/database", str(tmp_path))
        for variable, value in services[name]["environment"].items()
    }

    output = subprocess.run(
        [sys.executable, "-c", SHOW_SETTINGS],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=True,
    )

    assert output.stdout.split() == ["a-key", "db", "a-password", "redis://valkey:6379/0"]


def test_every_setting_is_documented_and_reaches_the_containers(services):
    read = set(re.findall(r'"((?:IOPORTAL|DATABASE)_\w+)"', SETTINGS.read_text()))
    documented = set(re.findall(r"^\| .*", README.read_text(), re.MULTILINE))
    documented = {name for row in documented for name in VARIABLE.findall(row.split(" | ")[0])}
    example = set(re.findall(r"^#?(\w+)=", EXAMPLE.read_text(), re.MULTILINE))

    in_files = re.compile("(_PASSWORD)?_FILE$")
    assert {name if name in read else in_files.sub("", name) for name in documented} == read
    assert example <= documented
    for name in PORTAL_SERVICES:
        # Compose sets what its own services determine, and nothing else: a value here wins.
        assert services[name]["environment"].keys() == FIXED
        assert services[name]["env_file"] == [{"path": "ioportal.env", "required": False}]


@pytest.mark.parametrize("name", PORTAL_SERVICES)
def test_the_portal_runs_with_minimal_privileges(services, name):
    service = services[name]

    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert "USER ioportal" in (PROJECT / "Dockerfile").read_text()


def test_every_permanent_service_has_a_health_check(services):
    permanent = services.keys() - {"migrate"}

    assert permanent == {"db", "valkey", "mail", *PORTAL_SERVICES} - {"migrate"}
    assert all("healthcheck" in services[name] for name in permanent)


def test_external_images_are_pinned_by_version(services):
    for name in ("db", "valkey", "mail"):
        assert re.search(r":v?\d+\.\d+\.\d+(-\w+)?$", services[name]["image"])


def essential(arguments):
    """A command without options for addresses, files and verbosity."""
    program, *rest = arguments
    command = " ".join([program.rsplit("/", 1)[-1], *rest])
    return re.sub(r" --(quiet|(host|port|schedule|loglevel) \S+)", "", command)


def dockerfile_command():
    command = re.search(
        r"^CMD (\[.*?\])", (PROJECT / "Dockerfile").read_text(), re.DOTALL | re.MULTILINE
    )
    return json.loads(command[1].replace("\\\n", ""))


def unit_command(name):
    unit = (PROJECT / f"deploy/ioportal-{name}.service").read_text()
    return shlex.split(re.search(r"^ExecStart=(.*)", unit, re.MULTILINE)[1].replace("%%", "%"))


@pytest.mark.parametrize("name", ["web", "worker", "outward-worker", "beat"])
def test_compose_systemd_and_checkout_run_the_same_programs(services, name):
    command = services[name].get("command")
    in_compose = shlex.split(command) if command else dockerfile_command()
    served = serve.commands(8000)[name]

    assert essential(in_compose) == essential(unit_command(name)) == essential(served)


@pytest.mark.parametrize("name", PORTAL_SERVICES)
def test_services_can_be_scaled(services, name):
    assert "container_name" not in services[name]
    assert [volume["read_only"] for volume in services[name]["volumes"]] == [True]


def test_the_web_server_is_probed_for_readiness(services):
    *_, program = services["web"]["healthcheck"]["test"]

    assert "http://127.0.0.1:8000/readyz" in program
    compile(program, "healthcheck", "exec")


def test_the_portal_is_no_superuser_of_its_database(services):
    database, portal = services["db"], services["web"]
    role = urlsplit(portal["environment"]["DATABASE_URL"]).username
    script = (PROJECT / "deploy/create-role.sh").read_text()

    assert role != database["environment"]["POSTGRES_USER"]
    assert "db_admin_password" not in portal["secrets"]
    assert any("create-role.sh:/docker-entrypoint-initdb.d/" in v for v in database["volumes"])
    assert f"CREATE ROLE {role} LOGIN" in script
    assert "SUPERUSER" not in script
