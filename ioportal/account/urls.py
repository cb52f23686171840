"""The addresses of a user's own account, and of all tokens."""

from django.urls import path

from ioportal.account import site_tokens, views

urlpatterns = [
    path("me/", views.own_account, name="own_account"),
    path("tokens/", site_tokens.token_list, name="token_list"),
]
