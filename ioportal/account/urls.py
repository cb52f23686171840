"""The address of a user's own account."""

from django.urls import path

from ioportal.account import views

urlpatterns = [path("", views.own_account, name="own_account")]
