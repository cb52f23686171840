"""Addresses of the pages of PanDA jobs."""

from django.urls import path

from ioportal.web.panda import views

urlpatterns = [
    path("", views.panda_list, name="panda_list"),
    path("<slug:cluster>/<int:panda_id>/", views.panda_job, name="panda_job"),
]
