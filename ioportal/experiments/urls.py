"""Addresses of experiments and of the what-if page."""

from django.urls import path

from ioportal.experiments.pages import experiments, model, uploads

urlpatterns = [
    path("experiments/", experiments.experiment_list, name="experiment_list"),
    path("experiments/upload/", uploads.new, name="upload"),
    path("experiments/uploads/<uuid:pk>/", uploads.upload, name="upload_state"),
    path("experiments/uploads/<uuid:pk>/complete/", uploads.complete, name="upload_complete"),
    path(
        "experiments/uploads/<uuid:pk>/files/<int:file>/parts/<int:number>/",
        uploads.part,
        name="upload_part",
    ),
    path("experiments/shared/<str:key>/", experiments.shared, name="shared_experiment"),
    path("experiments/<slug:slug>/", experiments.experiment, name="experiment"),
    path("experiments/<slug:slug>/edit/", experiments.edit, name="edit_experiment"),
    path("experiments/<slug:slug>/storage-areas/", experiments.edit_lookups, name="edit_lookups"),
    path(
        "experiments/<slug:slug>/exports/<slug:section>/<slug:name>/",
        experiments.export,
        name="experiment_export",
    ),
    path("experiments/<slug:slug>/runs/<int:pk>/", experiments.run, name="run"),
    path("experiments/<slug:slug>/runs/<int:pk>/edit/", experiments.edit_run, name="edit_run"),
    path("experiments/<slug:slug>/runs/<int:pk>/attach/", experiments.attach, name="attach"),
    path(
        "experiments/<slug:slug>/runs/<int:pk>/attachments/<int:attachment>/",
        experiments.attachment,
        name="attachment",
    ),
    path("model/", model.model, name="model"),
]
