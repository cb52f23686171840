"""Addresses of the ranking."""

from django.urls import path

from ioportal.web.ranking import views

urlpatterns = [path("", views.ranking, name="ranking")]
