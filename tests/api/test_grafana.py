"""The sample dashboard for Grafana: every address answers with the fields that its panels name."""

import json
import re

import pytest
from django.db import transaction

from tests.conftest import REPOSITORY
from tests.web import rows, stories
from tests.web.reading import json_of

FOLDER = REPOSITORY / "deploy/grafana"
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text())
TYPES = {"number": int | float, "string": str, "timestamp": str}
VALUES = {  # as Grafana writes them
    "${__from:date:iso}": "2017-07-05T12:00:00.000Z",
    "${__to:date:iso}": "2017-07-05T13:10:00.000Z",
    "${server}": "mds1",
}


def queries():
    """Yield the title and the query of every panel and variable."""
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["infinityQuery"]


@pytest.fixture
def site(db, tmp_path):
    """The job of `stories.heavy_job` with a flag, and the services of its server."""
    job = stories.heavy_job(tmp_path)
    stories.read_services()
    with transaction.atomic():
        rows.flag_job(job)


def test_every_query_has_its_fields(site, client, secret_of):
    header = re.search(r"httpHeaderValue1: (.*)", (FOLDER / "datasource.yaml").read_text())[1]
    secret = secret_of("sam", is_staff=True)
    headers = {"Authorization": header.replace("$IOPORTAL_TOKEN", secret)}
    titles = []
    for title, query in queries():
        address = re.sub(r"\$\{.*?\}", lambda variable: VALUES[variable[0]], query["url"])
        answer = client.get(address, headers=headers)
        assert answer.status_code == 200, title
        records = json_of(answer)[query["root_selector"]]
        assert records, title
        for column in query["columns"]:
            values = {type(record[column["selector"]]) for record in records} - {type(None)}
            assert values, (title, column)
            assert all(issubclass(kind, TYPES[column["type"]]) for kind in values), (title, column)
        titles.append(title)

    assert len(titles) == 6


def test_panels_use_the_provisioned_data_source():
    uid = re.search(r"uid: (\w+)", (FOLDER / "datasource.yaml").read_text())[1]

    assert {query["datasource"]["uid"] for _, query in queries()} == {uid}
