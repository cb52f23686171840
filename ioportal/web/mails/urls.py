"""Addresses of the mail pages."""

from django.urls import path

from ioportal.web.mails import views

urlpatterns = [
    path("", views.mail_list, name="mail_list"),
    path("<int:pk>/", views.mail, name="mail"),
]
