"""Addresses of the load ramp."""

from django.urls import path

from ioportal.web.load_ramp import views

urlpatterns = [
    path("", views.load_ramp, name="load_ramp"),
    path("over-time/", views.over_time, name="load_ramp_over_time"),
    path("bins/", views.bins, name="load_ramp_bins"),
]
