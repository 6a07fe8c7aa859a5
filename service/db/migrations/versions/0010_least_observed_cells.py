"""Let specifications of networks tell how many observed cells a variable needs."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# What was estimated before took every variable with something observed.
NO_LIMIT = 1
JOBS = sa.table("jobs", sa.column("id"), sa.column("kind"), sa.column("spec", sa.JSON))


def upgrade() -> None:
    _change_specs(lambda spec: {"min_observed": NO_LIMIT, **spec})


def downgrade() -> None:
    _change_specs(lambda spec: {key: v for key, v in spec.items() if key != "min_observed"})


def _change_specs(change: Any) -> None:
    connection = op.get_bind()
    rows = connection.execute(sa.select(JOBS).where(JOBS.c.kind == "estimation")).all()
    for row in rows:
        spec: dict[str, Any] = json.loads(row.spec) if isinstance(row.spec, str) else row.spec
        if spec.get("model", {}).get("kind") not in (None, "mixture"):
            statement = sa.update(JOBS).where(JOBS.c.id == row.id)
            connection.execute(statement.values(spec=change(spec)))
