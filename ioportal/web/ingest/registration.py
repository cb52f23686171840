"""Registration of tables: NIDs, nodes, users and projects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from ioportal.site.document_keys import InvalidDocument
from ioportal.site.models import Cluster
from ioportal.site.registration import register
from ioportal.site.registration_tables import LARGEST_BYTES, Table, document
from ioportal.web.common.staff_only import staff_only
from ioportal.web.ingest.segments import tabs

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile
    from django.http import HttpResponse

    from ioportal.web.common.requests import UserRequest

_LISTED_LINES = 5


class TableForm(forms.Form):
    """A table and its content."""

    table = forms.ChoiceField(label="Content", choices=Table, initial=Table.NIDS)
    cluster = forms.ModelChoiceField(
        Cluster.objects.all(),
        required=False,
        to_field_name="name",
        help_text="For NIDs and nodes.",
    )
    file = forms.FileField(label="File")

    def clean_file(self) -> str:
        """Return the text of the file."""
        file: UploadedFile[bytes] = self.cleaned_data["file"]
        if file.size is None or file.size > LARGEST_BYTES:
            raise forms.ValidationError(
                f"The file is larger than {LARGEST_BYTES:,} bytes. Split it."
            )
        try:
            return str(file.read(), "utf-8")
        except UnicodeDecodeError as error:
            raise forms.ValidationError(f"The file is not UTF-8 text: {error}.") from error


@require_http_methods(["GET", "HEAD", "POST"])
@staff_only
def tables(request: UserRequest) -> HttpResponse:
    """Register a table; a table with any error registers nothing."""
    form = TableForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        cluster = data["cluster"].name if data["cluster"] else ""
        try:
            done = register(document(Table(data["table"]), data["file"], cluster))
        except InvalidDocument as error:
            form.add_error("file", f"{error} Nothing was registered.")
        else:
            more = f" and {len(done) - _LISTED_LINES:,} more" if len(done) > _LISTED_LINES else ""
            names = ", ".join(done[:_LISTED_LINES]) or "nothing; the file is empty"
            messages.success(request, f"Registered: {names}{more}.")
            return redirect("site_tables")
    return render(
        request,
        "ingest/tables.html",
        {**tabs("tables"), "form": form},
        status=400 if form.errors else 200,
    )
