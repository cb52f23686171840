"""Addresses of the server pages."""

from django.urls import path

from ioportal.web.servers import views

urlpatterns = [
    path("", views.server_list, name="server_list"),
    path("<str:name>/", views.server, name="server"),
    path("<str:name>/senders/", views.who_sent, name="server_senders"),
    path("<str:name>/charts/<slug:chart>/", views.chart, name="server_chart"),
]
