"""Addresses of the population pages."""

from django.urls import path

from ioportal.web.populations import views

urlpatterns = [
    path("", views.filtered_population, name="populations"),
    path("other-metrics/", views.other_metrics, name="other_metrics"),
    path("histograms/<slug:metric>/", views.histogram, name="histogram"),
    path("<slug:slug>/", views.saved_population, name="population"),
]
