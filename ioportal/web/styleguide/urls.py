"""Addresses of the style guide."""

from django.urls import path

from ioportal.web.styleguide import views

urlpatterns = [
    path("", views.styleguide, name="styleguide"),
]
