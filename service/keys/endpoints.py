"""Making, listing and revoking a tenant's API keys."""

from typing import Annotated

from fastapi import APIRouter, Body, Path, Response

from service.http import pagination as paging
from service.http.dependencies import DatabaseDep, IdentityDep, SettingsDep
from service.http.json_route import JsonRoute
from service.http.openapi_responses import BODY_CODES, Responses, header, problem_responses
from service.http.pagination import CursorQuery, LimitQuery
from service.http.problems import ProblemCode, ProblemError
from service.http.root_path import address_of
from service.http.scopes import Scope
from service.keys import lifecycle
from service.keys.schemas import ApiKeyCreate, ApiKeyCreated, ApiKeyPage, ApiKeyRead


class AdminRoute(JsonRoute):
    """A route for keys that may make keys."""

    scope = Scope.ADMIN


router = APIRouter(prefix="/v1/api-keys", tags=["api-keys"], route_class=AdminRoute)

KeyId = Annotated[str, Path(max_length=40, description="Identifier of the key.")]
_CREATED: Responses = {201: {"headers": {"Location": header("Address of the key.")}}}


@router.post(
    "",
    operation_id="create_api_key",
    status_code=201,
    responses=_CREATED | problem_responses(*BODY_CODES),
)
def create_api_key(
    body: Annotated[
        ApiKeyCreate,
        Body(
            openapi_examples={
                "notebook": {"value": {"name": "my notebook", "scopes": ["read", "submit"]}}
            }
        ),
    ],
    response: Response,
    database: DatabaseDep,
    settings: SettingsDep,
    identity: IdentityDep,
) -> ApiKeyCreated:
    """Make a key for the tenant of the key that asks; its token is shown this once.

    Only a key that has the scope `metrics` itself makes one that has it.
    """
    if Scope.METRICS in body.scopes:
        # It tells of all tenants, which is not for the admin of one to allow.
        identity.require(Scope.METRICS)
    if settings.key_secret is None:
        raise ProblemError(
            ProblemCode.UNAVAILABLE,
            "API keys need VNCE_KEY_SECRET, which the operator has not set: make one with `openssl "
            "rand -hex 32` and give the same to every process.",
        )
    with database.transaction() as session:
        created = lifecycle.create(
            session,
            settings.hash_key,
            name=body.name,
            scopes=body.scopes,
            expires_at=body.expires_at,
        )
    response.headers["Location"] = address_of(f"/v1/api-keys/{created.id}")
    response.headers["Cache-Control"] = "no-store"
    return created


@router.get("", operation_id="list_api_keys")
def list_api_keys(
    database: DatabaseDep, limit: LimitQuery = 50, cursor: CursorQuery = None
) -> ApiKeyPage:
    """List the tenant's keys, newest first, revoked ones included; secrets are not kept."""
    with database.snapshot() as session:
        return lifecycle.page(session, limit, paging.place_of(cursor))


@router.get(
    "/{key_id}",
    operation_id="get_api_key",
    responses=problem_responses(ProblemCode.NOT_FOUND),
)
def get_api_key(key_id: KeyId, database: DatabaseDep) -> ApiKeyRead:
    """Show a key, without its secret."""
    with database.snapshot() as session:
        return lifecycle.describe(lifecycle.existing(session, key_id))


@router.delete(
    "/{key_id}",
    operation_id="revoke_api_key",
    status_code=204,
    response_class=Response,
    responses=problem_responses(ProblemCode.NOT_FOUND),
)
def revoke_api_key(key_id: KeyId, database: DatabaseDep) -> None:
    """Revoke a key: it works no longer, and stays in the list."""
    with database.transaction() as session:
        lifecycle.revoke(session, key_id)
