"""Addresses of the incident pages."""

from django.urls import path

from ioportal.web.incidents import views

urlpatterns = [
    path("", views.incident_list, name="incident_list"),
    path("save/", views.save_incident, name="save_incident"),
    path("impact/", views.impact_analysis, name="impact_analysis"),
    path("impact/<str:server>/times/", views.request_times, name="request_times"),
    path("impact/<str:server>/queue/", views.queue, name="queue"),
    path("<int:pk>/", views.incident, name="incident"),
]
