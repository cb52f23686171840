"""Addresses of the home page."""

from django.urls import path

from ioportal.web.home import views

urlpatterns = [
    path("", views.home, name="home"),
    path("now/", views.now, name="now"),
    path("observed/", views.observed, name="observed"),
    path("load/", views.load, name="load"),
]
