"""Addresses of the experiment pages."""

from django.urls import path

from ioportal.experiments.pages.views import experiments, lookups, runs, uploads

urlpatterns = [
    path("", experiments.experiment_list, name="experiment_list"),
    path("upload/", uploads.new, name="upload"),
    path("uploads/<uuid:pk>/", uploads.upload, name="upload_state"),
    path("uploads/<uuid:pk>/complete/", uploads.complete, name="upload_complete"),
    path(
        "uploads/<uuid:pk>/files/<int:file>/parts/<int:number>/", uploads.part, name="upload_part"
    ),
    path("shared/<str:key>/", experiments.shared, name="shared_experiment"),
    path("<slug:slug>/", experiments.experiment, name="experiment"),
    path("<slug:slug>/edit/", experiments.edit, name="edit_experiment"),
    path("<slug:slug>/storage-areas/", lookups.edit, name="edit_lookups"),
    path(
        "<slug:slug>/exports/<slug:section>/<slug:name>/",
        experiments.export,
        name="experiment_export",
    ),
    path("<slug:slug>/runs/<int:pk>/", runs.run, name="run"),
    path("<slug:slug>/runs/<int:pk>/edit/", runs.edit, name="edit_run"),
    path("<slug:slug>/runs/<int:pk>/attach/", runs.attach, name="attach"),
    path(
        "<slug:slug>/runs/<int:pk>/attachments/<int:attachment>/",
        runs.attachment,
        name="attachment",
    ),
]
