"""Address of the what-if page."""

from django.urls import path

from ioportal.experiments.model_page import views

urlpatterns = [path("", views.model, name="model")]
