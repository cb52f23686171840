"""Addresses of the rule pages."""

from django.urls import path

from ioportal.web.rules import views

urlpatterns = [
    path("", views.rule_list, name="rule_list"),
    path("<slug:code>/", views.rule, name="rule"),
    path("<slug:code>/thresholds/<int:pk>/", views.withdraw_thresholds, name="withdraw_thresholds"),
    path("<slug:code>/back-tests/<int:pk>/", views.back_test, name="back_test"),
    path("<slug:code>/back-tests/<int:pk>/stop/", views.stop_back_test, name="stop_back_test"),
]
