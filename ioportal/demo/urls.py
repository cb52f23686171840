"""Addresses of the demo's pages."""

from django.urls import path

from ioportal.demo import views

urlpatterns = [
    path("", views.tour_page, name="tour"),
    path("mailbox/", views.mailbox_page, name="mailbox"),
    path("mailbox/<str:key>/", views.received_mail, name="received_mail"),
    path("mailbox/<str:key>/html/", views.received_html, name="received_html"),
]
