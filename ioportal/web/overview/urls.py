"""Addresses of the overview."""

from django.urls import path

from ioportal.web.overview import views

urlpatterns = [
    path("", views.page, name="overview"),
    path("<slug:name>/", views.section, name="overview_section"),
]
