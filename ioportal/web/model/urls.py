"""Address of the what-if page."""

from django.urls import path

from ioportal.web.model import views

urlpatterns = [path("", views.model, name="model")]
