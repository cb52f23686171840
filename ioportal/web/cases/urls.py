"""Addresses of the case pages."""

from django.urls import path

from ioportal.web.cases import views

urlpatterns = [
    path("", views.case_list, name="case_list"),
    path("<int:pk>/", views.case, name="case"),
    path("<int:pk>/answer/", views.answer, name="case_answer"),
    path("<int:pk>/draft/", views.draft_mail, name="case_draft"),
    path("<int:pk>/flags/", views.case_flags, name="case_flags"),
    path("<int:pk>/weeks/", views.case_weeks, name="case_weeks"),
]
