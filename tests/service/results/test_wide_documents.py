"""A document may hold megabytes: it is read where it is asked for, and not beside a part."""

from sqlalchemy import inspect

from service.db.database import Database
from service.jobs import result_access as access
from service.results import repository
from service.results.schemas import EdgeRuleRead


def test_a_result_is_found_without_its_document(database: Database, job_id: str) -> None:
    with database.snapshot() as session:
        _, result = access.estimation_of(session, job_id)
        assert "document" in inspect(result).unloaded


def test_the_head_of_a_graph_is_that_of_the_document(database: Database, job_id: str) -> None:
    with database.snapshot() as session:
        head = repository.graph_head(session, job_id)
        _, result = access.result_of(session, job_id)
        assert head.names == result.document["names"]
        assert head.edge_rule == result.document["edge_rule"]
        assert head.is_positive_definite is True
    EdgeRuleRead.model_validate(head.edge_rule)
