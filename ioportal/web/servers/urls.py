"""Addresses of the server pages."""

from django.urls import path

from ioportal.web.servers import views

urlpatterns = [
    path("", views.server_list, name="server_list"),
    path("<str:name>/", views.server, name="server"),
    path("<str:name>/clients/", views.clients, name="server_clients"),
    path("<str:name>/capacity/", views.capacity, name="server_capacity"),
    path(
        "<str:name>/capacity/charts/<slug:chart>/",
        views.capacity_chart,
        name="server_capacity_chart",
    ),
    path("<str:name>/charts/<slug:chart>/", views.chart, name="server_chart"),
]
