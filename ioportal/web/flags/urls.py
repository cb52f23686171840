"""Addresses of the flag pages."""

from django.urls import path

from ioportal.web.flags import views

urlpatterns = [
    path("<int:pk>/", views.flag, name="flag"),
    path("<int:pk>/history/", views.flag_history, name="flag_history"),
    path("<int:pk>/similar-jobs/", views.flag_similar_jobs, name="flag_similar_jobs"),
]
