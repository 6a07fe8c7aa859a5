"""What an operator may set, read once at start-up from `VNCE_*` environment variables."""

import math
import sys
from enum import StrEnum
from typing import Self

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

# Fewer bytes of it could be guessed by whoever has a copy of the database.
MIN_HASH_KEY_LENGTH = 32


class Authentication(StrEnum):
    """Who may use the API."""

    KEYS = "keys"
    NONE = "none"


class Settings(BaseSettings):
    """Settings that the API and the workers share.

    Every field is set by an environment variable: `database_url` by `VNCE_DATABASE_URL`.
    """

    model_config = SettingsConfigDict(
        env_prefix="VNCE_",
        extra="ignore",
        frozen=True,
        # An error says which setting is wrong, and not what it is: it may be a secret.
        hide_input_in_errors=True,
    )

    database_url: str = Field(
        default="sqlite:///vnce-data/vnce.db",
        description="SQLAlchemy URL; sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/NAME.",
    )
    broker_url: str = Field(
        default="redis://127.0.0.1:6379/0",
        pattern="^(redis|rediss|unix)://",
        description="Redis or Valkey URL of the job queue.",
    )

    authentication: Authentication = Field(
        default=Authentication.KEYS,
        description="`keys`: every request needs an API key; `none`: whoever reaches the API may "
        "use it, which is for a loopback address or behind your own door.",
    )
    key_secret: SecretStr | None = Field(
        default=None,
        min_length=MIN_HASH_KEY_LENGTH,
        description="Secret text under which the secrets of API keys are hashed, the same for "
        f"every process, at least {MIN_HASH_KEY_LENGTH} characters; with another one no key works.",
    )
    root_path: str = Field(
        default="",
        pattern=r"^(/[A-Za-z0-9._~-]+)*$",
        description="Prefix of all paths under which a proxy shows the service, such as /vnce.",
    )
    trusted_proxies: str = Field(
        default="127.0.0.1",
        description="Addresses or networks, with commas between, from which `X-Forwarded-For` and "
        "`X-Forwarded-Proto` are believed; * for all.",
    )
    requests_per_minute: int = Field(
        default=6_000, gt=0, description="Requests that one API process takes of one key a minute."
    )
    max_streams: int = Field(
        default=100, gt=0, description="Event streams of one key that one API process keeps open."
    )
    max_streams_in_all: int = Field(
        default=400, gt=0, description="Event streams that one API process keeps open."
    )
    max_unfinished_jobs: int = Field(
        default=10_000, gt=0, description="Jobs of one key that may wait or run at a time."
    )
    max_running_jobs: int | None = Field(
        default=None,
        gt=0,
        description="Jobs of one tenant that workers may hold at a time, parts of jobs included; "
        "others wait. The same for every process.",
    )

    max_stored_bytes: int | None = Field(
        default=None,
        gt=0,
        description="Bytes of data sets and of files of results that one tenant may store.",
    )
    max_body_bytes: int = Field(
        default=64 * 2**20, gt=0, description="Largest data set that is read, in bytes."
    )
    max_json_bytes: int = Field(
        default=16 * 2**20, gt=0, description="Largest JSON request that is read, in bytes."
    )
    max_cells: int = Field(
        default=20_000_000, gt=0, description="Largest data set, in rows times columns."
    )
    max_decoded_bytes: int = Field(
        default=512 * 2**20,
        gt=0,
        description="Largest Parquet data set once unfolded, in bytes, as its footer announces.",
    )
    max_columns: int = Field(default=2_000, gt=0, description="Most columns of a data set.")
    max_name_length: int = Field(
        default=500, gt=0, description="Longest name of a data set or a column, in characters."
    )
    reader_memory_bytes: int = Field(
        default=3 * 2**29,
        ge=2**28,
        description="Most memory of a process that reads an upload, in bytes; two may run at once.",
    )
    reader_seconds: int = Field(
        default=120, gt=0, description="Longest time that reading an upload may take."
    )

    lease_seconds: float = Field(
        default=30.0, gt=0, description="How long a worker owns a job without a heartbeat."
    )
    heartbeat_seconds: float = Field(
        default=1.0,
        gt=0,
        description="How often a running job renews its lease and hears whether to stop; less than "
        "`lease_seconds`.",
    )
    max_attempts: int = Field(default=3, ge=1, description="Claims of a job before it fails.")
    cancel_grace_seconds: float = Field(
        default=3.0, ge=0, description="How long a cancelled fit may take to stop by itself."
    )
    reaper_seconds: float = Field(
        default=5.0, gt=0, description="How often expired leases are looked for."
    )

    @field_validator("heartbeat_seconds")
    @classmethod
    def _comes_before_the_lease_ends(cls, seconds: float, info: ValidationInfo) -> float:
        # Jobs would be taken from workers that are well.
        if seconds >= info.data.get("lease_seconds", math.inf):
            raise PydanticCustomError(
                "no_heartbeat_in_time", "Input should be less than VNCE_LEASE_SECONDS"
            )
        return seconds

    @classmethod
    def from_environment(cls) -> Self:
        """Return what the variables say; end the process, naming those that say what cannot be."""
        try:
            return cls()
        except ValidationError as error:
            wrong = [
                f"VNCE_{'_'.join(map(str, item['loc'])).upper()}: {item['msg']}"
                for item in error.errors(include_url=False, include_context=False)
            ]
            sys.exit("These settings cannot be used.\n" + "\n".join(wrong))

    @property
    def hash_key(self) -> str:
        """The text of `key_secret`.

        Raises `LookupError` if it was not given.
        """
        if self.key_secret is None:
            raise LookupError(
                "VNCE_KEY_SECRET is not set: API keys need it. Make one with `openssl rand -hex 32`"
                " and give the same to every process, or set VNCE_AUTHENTICATION=none."
            )
        return self.key_secret.get_secret_value()
