"""Addresses of the mail pages."""

from django.urls import path

from ioportal.web.mails import bodies, views

urlpatterns = [
    path("", views.mail_list, name="mail_list"),
    path("preview/", views.preview, name="mail_preview"),
    path("preview/html/", bodies.preview_html, name="mail_preview_html"),
    path("<int:pk>/", views.mail, name="mail"),
    path("<int:pk>/html/", bodies.html, name="mail_html"),
]
