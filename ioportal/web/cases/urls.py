"""Addresses of the case pages."""

from django.urls import path

from ioportal.web.cases import views

urlpatterns = [
    path("", views.case_list, name="case_list"),
    path("<int:pk>/", views.case, name="case"),
    path("<int:pk>/flags/", views.case_flags, name="case_flags"),
    path("<int:pk>/weeks/", views.case_weeks, name="case_weeks"),
]
