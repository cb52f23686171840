"""URLs of the site."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from ioportal.account import views as account

urlpatterns = [
    path("api/", include("ioportal.api.urls")),  # first: it has the most requests
    path("", include("ioportal.web.urls")),
    path("", include("ioportal.experiments.urls")),
    path("me/", account.own_account, name="own_account"),
    path("tokens/", account.token_list, name="token_list"),
    path("tour/", include("ioportal.demo.urls")),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", login_not_required(LogoutView.as_view()), name="logout"),
    path("admin/", admin.site.urls),
]
handler500 = "ioportal.web.common.outages.failed"
