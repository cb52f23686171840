"""Addresses of the trend pages."""

from django.urls import path

from ioportal.web.trends import views

urlpatterns = [
    path("", views.trends, name="trends"),
    path("<slug:name>/", views.trend, name="trend"),
]
