"""Addresses of the trend pages."""

from django.urls import path

from ioportal.web.trends import views

urlpatterns = [
    path("", views.trends, name="trends"),
    path("change-points/", views.change_points, name="change_points"),
    path("<slug:name>/", views.trend, name="trend"),
]
