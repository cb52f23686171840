"""A format is declared once; the command, the agent, the API and the docs follow."""

import argparse
import re
from pathlib import Path
from typing import get_args

import pytest

from collectors import source
from collectors.format import AgentInput, LineFormat
from collectors.formats import BY_NAME, FORMATS
from ioportal.ingest.loaders import BATCH_LOADERS, FILE_LOADERS
from ioportal.ingest.management.commands.ingest import Command
from ioportal.site.admin import SourceForm
from ioportal.site.models import Source
from ioportal.web.ingest.segments import SegmentFilter

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()


def index_row(form):
    """Return the row of a format in the table of docs/formats.md."""
    options = " ".join(f"`--{option.replace('_', '-')}`" for option in form.options)
    inputs = ", ".join(form.agent_inputs) or "none"
    return f"| `{form.name}` | {form.label} | {options} | {inputs} | `{form.batch_table.name}` |"


def test_the_docs_list_the_formats():
    listed = [line for line in PAGE.splitlines() if re.match(r"\| `\w+` \|.*\| `\w+` \|$", line)]

    assert listed == [index_row(form) for form in FORMATS]


def test_the_command_offers_the_formats():
    parser = argparse.ArgumentParser()
    Command().add_arguments(parser)

    usage = " ".join(parser.format_help().split())
    of_files = [form for form in FORMATS if form.options]
    assert f"FORMAT {', '.join(form.name for form in of_files)}" in usage
    for form in of_files:
        assert parser.parse_args([form.name, "file"]).format == form.name


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_the_portal_stores_files_and_batches_of_every_format(form):
    assert (form.table in FILE_LOADERS) is bool(form.options)  # without options: for agents only
    assert (form.batch_table in BATCH_LOADERS) is bool(form.scopes)  # without: people load files


def test_pages_offer_the_formats():
    choices = [(form.name, form.label) for form in FORMATS]
    of_sources = [(form.name, form.label) for form in FORMATS if form.scopes]

    assert list(SourceForm.base_fields["format"].choices) == of_sources
    assert SegmentFilter.base_filters["kind"].extra["choices"] == choices


def test_names_are_unique_and_storable():
    assert len(BY_NAME) == len(FORMATS)
    for name in BY_NAME:
        Source(name="source", format=name).clean_fields(exclude=["server"])


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_the_agent_follows_only_files_of_lines(form):
    assert set(form.agent_inputs) <= set(get_args(AgentInput))
    assert isinstance(form, LineFormat) or not {"file", "pipe"} & set(form.agent_inputs)


def test_files_of_experiments_are_recognised_by_their_first_bytes():
    fixtures = Path(__file__).parents[1] / "fixtures"
    of_files = [form for form in FORMATS if form.head]
    folders = {form.name: form.name.removesuffix("_json") for form in of_files}

    for folder in set(folders.values()):
        for path in (fixtures / folder).iterdir():
            found = [
                form.name for form in of_files if form.head.search(source.Source.open(path).head)
            ]
            expected = [name for name, its in folders.items() if its == folder]
            assert path.name == "README.md" or (len(found) == 1 and found[0] in expected), path
