"""Addresses of the comparison pages."""

from django.urls import path

from ioportal.web.comparisons import views

urlpatterns = [
    path("", views.compare, name="compare"),
    path("charts/<slug:name>/", views.compare_chart, name="compare_chart"),
    path("jobs/", views.compare_jobs, name="compare_jobs"),
    path("jobs/<slug:name>/", views.compare_jobs_chart, name="compare_jobs_chart"),
    path("presets/<slug:name>/", views.compare_preset, name="compare_preset"),
]
