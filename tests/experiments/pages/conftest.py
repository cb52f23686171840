"""Runs of an experiment, loaded through the collectors."""

import gzip
import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from ioportal.experiments import uploads
from ioportal.experiments.models import Upload

RUNS = """arm,run,protocol,locality,cpu_s,wall_s,state,events
before,b1,dcap,local,65,100,finished,1000
before,b2,dcap,local,66,101,finished,1000
before,b3,dcap,local,64,99,finished,1000
before,b4,dcap,local,65,102,finished,1000
before,b5,dcap,local,65,101,finished,1000
before,b6,dcap,local,,,hung,
after,a1,xroot,local,65,50,finished,1000
after,a2,xroot,local,66,51,finished,1000
after,a3,xroot,local,64,49,finished,1000
after,a4,xroot,local,65,52,finished,1000
after,a5,xroot,local,65,51,finished,1000
"""


@pytest.fixture
def send():
    """Upload files with a form as a browser without JavaScript does, and load them."""

    def post(client, content=RUNS, name="runs.csv", experiment="Protocols", **fields):
        contents = content if isinstance(content, list) else [content]
        files = [
            SimpleUploadedFile(name, each if isinstance(each, bytes) else each.encode())
            for each in contents
        ]
        data = {"experiment": experiment, "content": files, **fields}
        response = client.post("/experiments/upload/", data)
        if response.status_code == 302:
            uploads.load_next(10)
        return response

    return post


@pytest.fixture
def gzipped():
    """Return a text as a gzip file."""

    def compress(text):
        buffer = io.BytesIO()
        with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
            file.write(text.encode())
        return buffer.getvalue()

    return compress


@pytest.fixture
def latest():
    """Return the latest upload."""
    return lambda: Upload.objects.latest("created_at")
