"""Experiments, measurements of their runs, and uploaded files."""

from ioportal.experiments.models.experiment import (
    Arm,
    Attachment,
    Experiment,
    ExperimentQuerySet,
    PairTransfer,
    ProcessSample,
    Run,
    SystemCall,
    SystemCallWindow,
    Upload,
    UploadFile,
    UploadPart,
    UploadQuerySet,
)

__all__ = [
    "Arm",
    "Attachment",
    "Experiment",
    "ExperimentQuerySet",
    "PairTransfer",
    "ProcessSample",
    "Run",
    "SystemCall",
    "SystemCallWindow",
    "Upload",
    "UploadFile",
    "UploadPart",
    "UploadQuerySet",
]
