"""Addresses of the pages of users and projects."""

from django.urls import path

from ioportal.web.people import views

urlpatterns = [
    path("users/", views.users, name="users"),
    path("users/<path:name>/", views.user, name="user"),
    path("projects/", views.projects, name="projects"),
    path("projects/<path:name>/", views.project, name="project"),
]
