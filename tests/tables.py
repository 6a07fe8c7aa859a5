"""All tables as their records declare them, to compare with what migrations make."""

from service.datasets import records as dataset_records
from service.db import blobs, counters
from service.db.database import Record
from service.jobs import records as job_records
from service.jobs import result_records
from service.keys import records as key_records
from service.monitoring import records as worker_records

# Importing a module of records declares its tables in the metadata.
RECORD_MODULES = (
    blobs,
    key_records,
    dataset_records,
    job_records,
    result_records,
    worker_records,
    counters,
)
METADATA = Record.metadata
