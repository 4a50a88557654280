"""boto3's S3 client as Regen uses it."""

from typing import TYPE_CHECKING

import boto3.session
from botocore.config import Config

from regen_common import __version__, errors, log
from regen_common.objects import s3_errors, upload
from regen_common.objects.interface import Checksums

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CONNECTIONS_MAX = 32
"""As many threads may put at once without waiting for each other's connection."""


def open_client(
    *,
    bucket: str,
    endpoint_url: str | None,
    checksums: Checksums,
    timing: upload.Timing | None = None,
) -> "S3Client":
    """A client with credentials from boto3's chain; its secrets never show in a log.

    Raises :class:`regen_common.errors.DestinationRefusedError` where there are no credentials.
    """
    config = _config(
        timing or upload.Timing(), checksums=checksums, path_style=endpoint_url is not None
    )
    place = s3_errors.Place(bucket=bucket, endpoint=endpoint_url or "Amazon S3")
    with s3_errors.translated(place):
        session = boto3.session.Session()
        _hide_secrets(session, place)
        client = session.client("s3", endpoint_url=endpoint_url, config=config)
    client.meta.events.register("before-send.s3.PutObject", upload.require_time)
    return client


def _config(timing: upload.Timing, *, checksums: Checksums, path_style: bool) -> Config:
    # standard mode: at boto3's 3 attempts, 4 of 12 PUTs were lost while a store answered every
    # second request with SlowDown; at 8, none
    return Config(
        connect_timeout=timing.connect_s,
        read_timeout=timing.read_s,
        retries={"mode": "standard", "total_max_attempts": timing.attempts_max},
        tcp_keepalive=True,
        max_pool_connections=CONNECTIONS_MAX,
        request_checksum_calculation=checksums,
        response_checksum_validation=checksums,
        s3={"addressing_style": "path" if path_style else "auto"},
        user_agent_extra=f"regen/{__version__}",
    )


def _hide_secrets(session: boto3.session.Session, place: s3_errors.Place) -> None:
    credentials = session.get_credentials()
    if credentials is None:
        raise errors.DestinationRefusedError(s3_errors.no_credentials(place))
    frozen = credentials.get_frozen_credentials()
    log.add_secret(frozen.secret_key)
    log.add_secret(frozen.token)
