"""Registering tables of the site by page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from ioportal.site.models import Cluster
from ioportal.site.registration import InvalidDocument, register
from ioportal.site.registration_tables import LARGEST_BYTES, Table, document
from ioportal.web.common.access import staff_only
from ioportal.web.ingest import segments

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile
    from django.http import HttpResponse

    from ioportal.web.common.requests import UserRequest

_LINES_SHOWN = 5


class TableForm(forms.Form):
    """A file, and what it holds."""

    table = forms.ChoiceField(label="It holds", choices=Table, initial=Table.NIDS)
    cluster = forms.ModelChoiceField(
        Cluster.objects.all(),
        required=False,
        to_field_name="name",
        help_text="Of NIDs and nodes.",
    )
    file = forms.FileField(label="File")

    def clean_file(self) -> str:
        """Return the text of the file."""
        file: UploadedFile[bytes] = self.cleaned_data["file"]
        if file.size is None or file.size > LARGEST_BYTES:
            raise forms.ValidationError(f"The file has more than {LARGEST_BYTES:,} bytes.")
        try:
            return str(file.read(), "utf-8")
        except UnicodeDecodeError as error:
            raise forms.ValidationError(f"The file is not UTF-8: {error}") from error


@require_http_methods(["GET", "HEAD", "POST"])
@staff_only
def tables(request: UserRequest) -> HttpResponse:
    """Take a file and register what it says; a file that is wrong anywhere registers nothing."""
    form = TableForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        told = form.cleaned_data
        cluster = told["cluster"].name if told["cluster"] else ""
        try:
            done = register(document(Table(told["table"]), told["file"], cluster))
        except InvalidDocument as error:
            form.add_error("file", f"{error} Nothing was registered.")
        else:
            more = f" and {len(done) - _LINES_SHOWN:,} more" if len(done) > _LINES_SHOWN else ""
            names = ", ".join(done[:_LINES_SHOWN]) or "nothing: the file says nothing"
            messages.success(request, f"Registered: {names}{more}.")
            return redirect("site_tables")
    return render(
        request,
        "ingest/tables.html",
        {
            "section": "ingest",
            "tab": "tables",
            "waiting": segments.waiting(),
            "form": form,
        },
        status=400 if form.errors else 200,
    )
