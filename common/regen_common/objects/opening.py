"""From what a user writes after ``--to`` to an open destination."""

import os
import re
import urllib.parse
from pathlib import Path
from typing import Final, get_args

from regen_common import errors, log
from regen_common.objects.directory import DirectoryObjects
from regen_common.objects.interface import Checksums, Objects

CHECKSUMS_DEFAULT: Final[Checksums] = "when_required"

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_HALF_SCHEME = re.compile(r"(s3|file|gs|https?):", re.IGNORECASE)
_BUCKET = re.compile(r"[a-zA-Z0-9._-]{3,255}")
_FORMS: Final = "write s3://BUCKET/PREFIX, or a folder"


def open_objects(
    url: str, *, endpoint_url: str | None = None, checksums: str | None = None
) -> Objects:
    """Open ``s3://bucket/prefix``, ``file:///folder`` or a folder; nothing is written yet.

    ``endpoint_url``: of an S3 store that is not Amazon's (else ``AWS_ENDPOINT_URL_S3`` or
    ``AWS_ENDPOINT_URL``). Credentials come from boto3's usual chain. ``checksums``: see
    :data:`Checksums`; else ``AWS_REQUEST_CHECKSUM_CALCULATION`` counts.

    Raises :class:`regen_common.errors.UsageError` for a URL that names no destination and
    :class:`regen_common.errors.DestinationRefusedError` where no credentials are found.
    """
    scheme = _SCHEME.match(url)
    if scheme is None and _HALF_SCHEME.match(url):
        raise errors.UsageError(f"{log.scrub(url)}: a slash is missing; {_FORMS}")
    if scheme is None:
        return DirectoryObjects(_folder(url))
    if scheme[1].lower() == "file":
        return DirectoryObjects(_file_url_folder(url))
    if scheme[1].lower() == "s3":
        return _open_s3(url, endpoint_url=endpoint_url, checksums=checksums)
    raise errors.UsageError(f"{log.scrub(url)} is no destination that Regen knows; {_FORMS}")


def _folder(path: str) -> Path:
    if not path.strip() or "\0" in path:
        raise errors.UsageError(f"an empty destination; {_FORMS}")
    return Path(path).expanduser().absolute()


def _file_url_folder(url: str) -> Path:
    parts = urllib.parse.urlsplit(url)
    if parts.netloc not in {"", "localhost"}:
        raise errors.UsageError(f"{log.scrub(url)} is on another host; write file:///FOLDER")
    return _folder(urllib.parse.unquote(parts.path))


def _open_s3(url: str, *, endpoint_url: str | None, checksums: str | None) -> Objects:
    # boto3 costs 0.2 s to import, and a run into a folder does not need it
    from regen_common.objects import s3, s3_client

    bucket, _, prefix = url[len("s3://") :].partition("/")
    if "@" in bucket:
        raise errors.UsageError(
            "credentials do not belong in the destination's URL; "
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if not _BUCKET.fullmatch(bucket):
        raise errors.UsageError(f"{url} names no bucket; {_FORMS}")
    endpoint_url = _endpoint(endpoint_url)
    checksums = _checksums(checksums)
    client = s3_client.open_client(endpoint_url=endpoint_url, checksums=checksums, bucket=bucket)
    return s3.S3Objects(client, bucket=bucket, prefix=prefix.strip("/"), checksums=checksums)


def _endpoint(given: str | None) -> str | None:
    url = given or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if not url:
        return None
    if not re.match(r"https?://[^/]", url):
        raise errors.UsageError(f"endpoint {log.scrub(url)}: it begins with http:// or https://")
    if "@" in urllib.parse.urlsplit(url).netloc:
        raise errors.UsageError(
            f"endpoint {log.scrub(url)}: credentials do not belong in it; "
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    return url


def _checksums(given: str | None) -> Checksums:
    value = given or os.environ.get("AWS_REQUEST_CHECKSUM_CALCULATION") or CHECKSUMS_DEFAULT
    known: tuple[Checksums, ...] = get_args(Checksums)
    for each in known:
        if value.lower() == each:
            return each
    raise errors.UsageError(f"checksums {value!r}: it is one of {', '.join(known)}")
