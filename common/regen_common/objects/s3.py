"""A bucket and prefix as destination: created with If-None-Match, and seen before it counts."""

import base64
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from regen_common import errors
from regen_common.clock import Clock, SystemClock
from regen_common.objects import content, names, s3_errors, upload
from regen_common.objects.interface import JSON_LINES, Checksums, ObjectInfo

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

READS_MAX: Final = 3
"""How often an object is asked for whose body breaks off; boto3 repeats only requests."""

_SHA256: Final = "sha256"  # in the metadata: x-amz-meta-sha256
_NOT_FOUND: Final = 404
_SERVER_ERROR: Final = 500


class S3Objects:
    """See :class:`regen_common.objects.interface.Objects`.

    ``put_new`` asks with HEAD, PUTs with ``If-None-Match: *``, and asks again. A store that
    ignores that header is caught by the first HEAD, unless another writer creates the same name
    between it and the PUT: there, and only there, the later PUT wins silently. For batches that
    is harmless, because their names carry the sha256 of their content.
    """

    def __init__(
        self,
        client: "S3Client",
        *,
        bucket: str,
        prefix: str,
        checksums: Checksums = "when_required",
        timing: upload.Timing | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._checksums = checksums
        self._timing = timing or upload.Timing()
        self._clock = clock or SystemClock()
        self._place = s3_errors.Place(bucket=bucket, endpoint=client.meta.endpoint_url)

    @property
    def url(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}".removesuffix("/")

    def __str__(self) -> str:
        return self.url

    def check(self) -> None:
        """Ask for a list: unlike a HEAD's, its answer says what is wrong."""
        self._ask_list(self._prefix)

    def put_new(
        self, name: str, body: bytes, *, sha256: str, content_type: str = JSON_LINES
    ) -> None:
        until_s = self._clock.monotonic_s() + self._timing.send_s
        unsettled = None
        found = self.head(name)
        if found is None:
            unsettled = self._create(
                name, body, until_s, ContentType=content_type, Metadata={_SHA256: sha256}
            )
            found = self.head(name)
        if found is None:
            raise unsettled or errors.DestinationError(
                f"{self._place.endpoint} took {name} into bucket {self._bucket} and does not "
                "have it; see whether something deletes there"
            )
        if not self._is_same(found, body, sha256):
            raise errors.ObjectConflictError(
                f"{name} is at {self} with other content, {found.size:,} bytes; nothing was "
                "overwritten. Move it away if it is damaged or not this run's, then go on"
            )

    def put(self, name: str, body: bytes, *, content_type: str = "application/json") -> None:
        until_s = self._clock.monotonic_s() + self._timing.send_s
        with s3_errors.translated(self._place):
            self._send(name, body, until_s, ContentType=content_type)

    def get(self, name: str) -> bytes | None:
        key = self._key(name)
        for left in reversed(range(READS_MAX)):
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=key)
                return answer["Body"].read()
            except ClientError as cause:
                if s3_errors.code_of(cause) in {"NoSuchKey", str(_NOT_FOUND)}:
                    return None
                raise s3_errors.error_of(cause, self._place) from cause
            except BotoCoreError as cause:
                if not (left and s3_errors.is_unsettled(cause)):
                    raise s3_errors.error_of(cause, self._place) from cause
        raise AssertionError("the last read returns or raises")

    def head(self, name: str) -> ObjectInfo | None:
        """None also where the whole bucket is missing: a HEAD can't tell, ``check`` can."""
        key = self._key(name)
        with s3_errors.translated(self._place):
            try:
                answer = self._client.head_object(Bucket=self._bucket, Key=key)
            except ClientError as cause:
                status = s3_errors.status_of(cause)
                if status == _NOT_FOUND:
                    return None
                if status < _SERVER_ERROR:
                    self._ask_list(key)  # raises the reason, which a HEAD's answer lacks
                raise
        metadata = {field.lower(): value for field, value in answer["Metadata"].items()}
        return ObjectInfo(
            name=name,
            # proxies there are that drop the length of a HEAD's answer
            size=answer["ContentLength"] if "ContentLength" in answer else self._listed_size(key),
            sha256=metadata.get(_SHA256),
            modified=answer["LastModified"].timestamp(),
        )

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Held whole in memory: not every store lists in order."""
        where = self._prefix + names.require_prefix(prefix)
        found = []
        with s3_errors.translated(self._place):
            paginator = self._client.get_paginator("list_objects_v2")
            for page in paginator.paginate(Bucket=self._bucket, Prefix=where):
                found += [self._info(entry) for entry in page.get("Contents", ())]
        # consoles make empty objects named "folder/"
        objects = (info for info in found if not info.name.endswith("/"))
        return iter(sorted(objects, key=lambda info: info.name))

    def close(self) -> None:
        self._client.close()

    def _key(self, name: str) -> str:
        return self._prefix + names.require_name(name)

    def _info(self, entry: Any) -> ObjectInfo:
        return ObjectInfo(
            name=entry["Key"].removeprefix(self._prefix),
            size=entry["Size"],
            sha256=None,
            modified=entry["LastModified"].timestamp(),
        )

    def _ask_list(self, prefix: str) -> Sequence[Any]:
        with s3_errors.translated(self._place):
            answer = self._client.list_objects_v2(Bucket=self._bucket, Prefix=prefix, MaxKeys=1)
        return answer.get("Contents", ())

    def _listed_size(self, key: str) -> int:
        return int(next((each["Size"] for each in self._ask_list(key) if each["Key"] == key), 0))

    def _create(
        self, name: str, body: bytes, until_s: float, **fields: Any
    ) -> errors.RegenError | None:
        """PUT if the name is free. What comes back says why it may or may not be there now."""
        try:
            self._send(name, body, until_s, IfNoneMatch="*", **fields)
        except (ClientError, BotoCoreError, upload.OutOfTimeError) as cause:
            error = s3_errors.error_of(cause, self._place)
            error.__cause__ = cause
            if not s3_errors.is_unsettled(cause):
                raise error from cause
            return error
        return None

    def _send(self, name: str, body: bytes, until_s: float, **fields: Any) -> None:
        fields |= _checksum(body, self._checksums)
        flow = upload.Upload(body, clock=self._clock, until_s=until_s)
        self._client.put_object(Bucket=self._bucket, Key=self._key(name), Body=flow, **fields)

    def _is_same(self, found: ObjectInfo, body: bytes, sha256: str) -> bool:
        if found.sha256 is not None and found.sha256 != sha256:
            return False
        if found.sha256 == sha256 and found.size == len(body):
            return True
        # no metadata, or packed by another version of the codec: only the content can tell
        stored = self.get(found.name)
        return stored is not None and content.is_same(found.name, stored, body=body, sha256=sha256)


def _checksum(body: bytes, checksums: Checksums) -> dict[str, str]:
    """By which the store can tell a damaged body; ours, so that boto3 adds none as a trailer."""
    if checksums == "when_supported":
        return {"ChecksumCRC32": base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()}
    digest = hashlib.md5(body, usedforsecurity=False).digest()
    return {"ContentMD5": base64.b64encode(digest).decode()}
