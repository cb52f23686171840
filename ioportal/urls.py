"""URLs of the site."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

urlpatterns = [
    path("api/", include("ioportal.api.urls")),  # first: it has the most requests
    path("", include("ioportal.web.urls")),
    path("", include("ioportal.experiments.urls")),
    path("", include("ioportal.account.urls")),
    path("tour/", include("ioportal.demo.urls")),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", login_not_required(LogoutView.as_view()), name="logout"),
    path("admin/", admin.site.urls),
]
handler500 = "ioportal.web.common.outages.failed"
