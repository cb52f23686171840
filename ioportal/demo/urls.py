"""The address of the tour."""

from django.urls import path

from ioportal.demo import views

urlpatterns = [path("", views.tour_page, name="tour")]
