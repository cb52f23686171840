"""Addresses of the incident pages."""

from django.urls import path

from ioportal.web.incidents import views

urlpatterns = [
    path("", views.incident_list, name="incident_list"),
    path("keep/", views.keep, name="keep_incident"),
    path("range/", views.incident_range, name="incident_range"),
    path("<int:pk>/", views.incident, name="incident"),
]
