"""Addresses of the search."""

from django.urls import path

from ioportal.web.search import views

urlpatterns = [
    path("", views.search, name="search"),
]
