"""Addresses of the mitigation pages."""

from django.urls import path

from ioportal.web.mitigations import views

urlpatterns = [
    path("", views.mitigation_list, name="mitigation_list"),
    path("log/", views.log_mitigation, name="log_mitigation"),
    path("what-worked/", views.catalogue, name="what_worked"),
    path("<int:pk>/", views.mitigation, name="mitigation"),
    path("<int:pk>/edit/", views.edit_mitigation, name="edit_mitigation"),
]
