"""The fields of the records of a look-up: types, units and meanings, as JSON Schema."""

from __future__ import annotations

from typing import Any

from collectors.tables import METADATA_OPERATIONS
from ioportal.jobs.analysis.quality import Grade
from ioportal.load.job_exports import PANDA_COLUMNS

JOB_COLUMNS = {
    "jobname": "name",
    "owner": "owner",
    "project": "project",
    "queue": "queue",
    "jobstatus": "state",
    "submittime": "submitted_at",
    "starttime": "started_at",
    "endtime": "ended_at",
}

_TEXT, _WHOLE, _NUMBER, _FLAG = (
    {"type": [kind, "null"]} for kind in ("string", "integer", "number", "boolean")
)
_TIME = _TEXT | {"pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}$"}
_QUALITY = {"enum": [*Grade, None]}
_MIX = {
    "type": ["object", "null"],
    "propertyNames": {"enum": list(METADATA_OPERATIONS)},
    "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
}
# Of a PanDA job, and of a batch job in a look-up by batch id: type, meaning and example.
_OWN: dict[str, tuple[dict[str, Any], str, Any]] = {
    "pandaid": (_WHOLE, "PanDA id", 4012345678),
    "jeditaskid": (_WHOLE, "PanDA task", 10995522),
    "attemptnr": (_WHOLE, "attempt", 1),
    "jobstatus": (_TEXT, "state in PanDA, or of the batch job", "finished"),
    "error": (_TEXT, "error that PanDA reported", ""),
    "batchid": (_TEXT, "batch id as PanDA reports it, or of the batch job", "3567126"),
    "computingsite": (_TEXT, "PanDA queue", "ORNL_Titan_MCORE"),
    "modificationhost": (_TEXT, "host that PanDA reported", "titan-batch7"),
    "produsername": (_TEXT, "user in PanDA", "gangarbt"),
    "transformation": (_TEXT, "transformation", "Sim_tf.py"),
    "creationtime": (_TIME, "creation", "2017-08-18T10:58:03"),
    "starttime": (_TIME, "start", "2017-08-18T12:00:00"),
    "endtime": (_TIME, "end; null: not ended", "2017-08-18T13:40:00"),
    "modificationtime": (_TIME, "latest change in PanDA", "2017-08-18T13:41:12"),
    "corecount": (_WHOLE, "cores", 16),
    "cpuconsumptiontime": (_NUMBER, "CPU time in s", 71200.0),
    "timegetjob": (_NUMBER, "time to get the job from PanDA in s", 2.0),
    "timestagein": (_NUMBER, "time of stage-in in s", 41.0),
    "timepayload": (_NUMBER, "time of the payload in s", 5700.0),
    "timestageout": (_NUMBER, "time of stage-out in s", 35.0),
    "timetotal_setup": (_NUMBER, "time of set-up in s", 120.0),
    "nevents": (_WHOLE, "events", 100),
    "maxpss_bytes": (_WHOLE, "largest proportional set size in bytes", 21474836480),
    "maxswap_bytes": (_WHOLE, "largest use of swap in bytes", 0),
    "transfertype": (_TEXT, "transfer type; empty: unknown", ""),
    "jobname": (_TEXT, "name of the batch job", "atlas-pilot"),
    "owner": (_TEXT, "user of the batch job", "panda"),
    "project": (_TEXT, "project of the batch job", "CSC108"),
    "queue": (_TEXT, "queue of the batch system", "batch"),
    "submittime": (_TIME, "submission", "2017-08-18T11:02:10"),
}
# The figures of the batch job.
FIGURES: dict[str, tuple[dict[str, Any], str, Any]] = {
    "cluster": (_TEXT, "cluster", "titan"),
    "simulated": (_FLAG, "whether the data is simulated", False),
    "batch_job": (_TEXT, "id of the batch job in accounting", "3567126"),
    "shared_batch": (
        _FLAG,
        "whether the batch job ran several PanDA jobs: the figures are of all of them together",
        True,
    ),
    "npandajobs": (_WHOLE, "PanDA jobs inside the batch job", 300),
    "nodes": (_WHOLE, "nodes of the batch job", 300),
    "totrbytes": (_NUMBER, "bytes read, in kB of 1,000 bytes", 51200000.0),
    "totwbytes": (_NUMBER, "bytes written, in kB of 1,000 bytes", 2048000.0),
    "raterbytes": (_NUMBER, "bytes read per second of the job, in kB/s", 8533.3),
    "ratewbytes": (_NUMBER, "bytes written per second of the job, in kB/s", 341.3),
    "bytes_unit": (_TEXT, "unit of the four fields above: always kB", "kB"),
    "read_bytes": (_WHOLE, "bytes read", 51200000000),
    "write_bytes": (_WHOLE, "bytes written", 2048000000),
    "open_total": (_WHOLE, "opens", 2106213),
    "close_total": (_WHOLE, "closes", 2104987),
    "mdops_total": (_WHOLE, "metadata operations, with opens and closes", 6312004),
    "mdops_rate_max": (_NUMBER, "largest rate of metadata operations per second", 12044.5),
    "mdops_rate_max_interval_s": (_NUMBER, "length of the interval of that rate in s", 30.0),
    "mdt_share_max_pct": (
        _NUMBER,
        "largest share of the job in the metadata operations of an MDT in %, to two digits",
        31.0,
    ),
    "op_mix": (
        _MIX,
        "share of each kind in the metadata operations, from 0 to 1; null if they are unknown",
        {"open": 0.3337, "close": 0.3335, "getattr": 0.3328},
    ),
    "impact_s": (_NUMBER, "extra wait of other users in s", 164.2),
    "impact_is_estimated": (
        _FLAG,
        "whether the impact is estimated from statistics of the server; false: measured in traces",
        False,
    ),
    "mds_share_pct": (_NUMBER, "share of the metadata server's time during the impact in %", 61.3),
    "flags": (
        {"type": "array", "items": {"type": "string"}},
        "codes of the rules that flagged the job on good data, most severe first",
        ["open-storm"],
    ),
    "quality": (_QUALITY, "quality of the metadata figures", "good"),
    "bytes_quality": (_QUALITY, "quality of the bytes", "good"),
    "computedtime": (_TIME, "computation of the figures", "2017-08-18T13:45:30"),
    "url": (_TEXT, "page of the batch job", "https://io.example.org/jobs/1042/"),
}
PANDA_FIELDS = (*PANDA_COLUMNS, *FIGURES)
JOB_FIELDS = ("batchid", *JOB_COLUMNS, *FIGURES)
_TABLE = _OWN | FIGURES
FIELDS: dict[str, dict[str, Any]] = {
    name: kind | {"description": text} for name, (kind, text, _) in _TABLE.items()
}
EXAMPLE = {name: _TABLE[name][2] for name in PANDA_FIELDS}
RECORD = {
    "type": "object",
    "description": "A PanDA job with the figures of its batch job, or a batch job. Null: unknown.",
    "properties": {name: FIELDS[name] for name in dict.fromkeys((*PANDA_FIELDS, *JOB_FIELDS))},
    "additionalProperties": False,
    "examples": [EXAMPLE],
}
BY_ID = {
    "type": "object",
    "description": "Records by id. Null: there is no such job, or you may not see it.",
    "additionalProperties": {"anyOf": [RECORD, {"type": "null"}]},
}
LIST = {
    "type": "object",
    "description": "With form=list.",
    "required": ["jobs", "nrecords", "timestamp", "unknown", "warnings", "errors"],
    "properties": {
        "jobs": {"type": "array", "items": RECORD},
        "nrecords": {"type": "integer", "description": "Number of records"},
        "timestamp": {"type": "string", "description": "Time of the answer (UTC)"},
        "unknown": {
            "type": "object",
            "description": "Ids without a job that you may see, by parameter",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
        },
        "warnings": {"type": "array", "items": {"type": "string"}},
        "errors": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": False,
}
