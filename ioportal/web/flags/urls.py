"""Addresses of the flag pages."""

from django.urls import path

from ioportal.web.flags import views

urlpatterns = [
    path("", views.flag_list, name="flag_list"),
    path("<int:pk>/", views.flag, name="flag"),
    path("<int:pk>/history/", views.history, name="flag_history"),
    path("<int:pk>/peers/", views.flag_peers, name="flag_peers"),
]
