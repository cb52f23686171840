"""Addresses of the job pages."""

from django.urls import path

from ioportal.web.jobs import views

urlpatterns = [
    path("", views.job_list, name="job_list"),
    path("<int:pk>/", views.job, name="job"),
    path("<int:pk>/rpcs/", views.rpcs, name="job_rpcs"),
    path("<int:pk>/similar-jobs/", views.similar_jobs, name="similar_jobs"),
    path("<int:pk>/capacity/", views.capacity, name="job_capacity"),
    path("<int:pk>/panda/", views.panda_jobs, name="job_panda"),
    path("<int:pk>/timelines/<slug:name>/", views.timeline, name="job_timeline"),
    path("<slug:cluster>/<str:batch_id>/", views.find_job, name="find_job"),
]
