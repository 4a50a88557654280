"""What an error of boto3 or of the store means, by type, code and status; the only place for it.

Messages name bucket and endpoint, never a key: of what the store says, only its code is shown.
"""

import contextlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from botocore import exceptions as boto

from regen_common import errors
from regen_common.objects import upload


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """What messages name."""

    bucket: str
    endpoint: str  # its URL


_REGION: Final = (
    "bucket {bucket} is in another region than the one asked at {endpoint}; "
    "set AWS_DEFAULT_REGION to the bucket's region, or --endpoint-url"
)
_ACCESS: Final = (
    "{endpoint} denies {operation} in bucket {bucket}; "
    "the key needs s3:PutObject, s3:GetObject and s3:ListBucket there"
)
_FULL: Final = "bucket {bucket} at {endpoint} is full; raise its quota, the write is tried again"
_RENEW: Final = "the credentials for {endpoint} have expired; renew them, the write is tried again"

_REFUSED: Final = {
    "NoSuchBucket": "there is no bucket {bucket} at {endpoint}; create it, or correct --to",
    "InvalidBucketName": "{bucket} can't be a bucket's name at {endpoint}; correct --to",
    "AccessDenied": _ACCESS,
    "AllAccessDisabled": _ACCESS,
    "403": _ACCESS,
    "InvalidAccessKeyId": "{endpoint} does not know the access key; correct AWS_ACCESS_KEY_ID "
    "(or the profile), or --endpoint-url",
    "SignatureDoesNotMatch": "{endpoint} finds the signature wrong; correct AWS_SECRET_ACCESS_KEY "
    "(or the profile)",
    "InvalidToken": "{endpoint} does not accept the session token; correct AWS_SESSION_TOKEN",
    "PermanentRedirect": _REGION,
    "AuthorizationHeaderMalformed": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "301": _REGION,
    "NotImplemented": "{endpoint} can't do {operation} as Regen asks for it; use a store that "
    "knows If-None-Match, and the checksums when_required",
    "501": "{endpoint} can't do {operation} as Regen asks for it; use a store that "
    "knows If-None-Match, and the checksums when_required",
}
_TRANSIENT: Final = {
    "ExpiredToken": _RENEW,
    "ExpiredTokenException": _RENEW,
    "TokenRefreshRequired": _RENEW,
    "RequestTimeTooSkewed": "RequestTimeTooSkewed: this machine's clock and the one of {endpoint} "
    "differ too much; set the clock",
    "QuotaExceeded": _FULL,
    "XMinioAdminBucketQuotaExceeded": _FULL,
    "XMinioStorageFull": _FULL,
    "BadDigest": "{operation} to {endpoint} was damaged on its way; it is tried again",
    "XAmzContentSHA256Mismatch": "{operation} to {endpoint} was damaged on its way; "
    "it is tried again",
    "IncompleteBody": "{operation} to {endpoint} was cut on its way; it is tried again",
    "RequestTimeout": "{endpoint} waited too long for {operation}; it is tried again",
    "SlowDown": "{endpoint} asks to slow down (SlowDown) and still did after all attempts; "
    "use fewer sinks, or wait",
}
_TRANSIENT_STATUS: Final = {408, 409, 412, 425, 429}
_UNSETTLED_STATUS: Final = {409, 412}
_NO_RENEWAL: Final = (
    boto.CredentialRetrievalError,
    boto.MetadataRetrievalError,
    boto.TokenRetrievalError,
    boto.SSOError,
)
_MAYBE_LATER: Final = (
    boto.ConnectionError,
    boto.HTTPClientError,
    boto.IncompleteReadError,
    boto.FlexibleChecksumError,
)


@contextlib.contextmanager
def translated(place: Place) -> Iterator[None]:
    """Raise what the body raises of boto3 as the error that a caller of Regen can act on."""
    try:
        yield
    except (boto.ClientError, boto.BotoCoreError, upload.OutOfTimeError) as cause:
        raise error_of(cause, place) from cause


def error_of(cause: Exception, place: Place) -> errors.RegenError:
    """The error that says what to do about ``cause``."""
    if isinstance(cause, boto.ClientError):
        return _answered(cause, place)
    if isinstance(cause, (boto.NoCredentialsError, boto.PartialCredentialsError)):
        return errors.DestinationRefusedError(no_credentials(place))
    if _is_bad_certificate(cause):
        return errors.DestinationRefusedError(
            f"the certificate of {place.endpoint} is not trusted; "
            "name its authority's file in AWS_CA_BUNDLE"
        )
    if isinstance(cause, _NO_RENEWAL):
        return errors.DestinationError(_RENEW.format(endpoint=place.endpoint))
    if isinstance(cause, (upload.OutOfTimeError, *_MAYBE_LATER)):
        return errors.DestinationError(
            f"{place.endpoint} is out of reach or did not answer in time ({_name(cause)}); "
            "see whether it is up and the network well"
        )
    return errors.DestinationRefusedError(
        f"boto3 can't use {place.endpoint} ({_name(cause)}); correct its environment or profile"
    )


def is_unsettled(cause: Exception) -> bool:
    """Whether a create-only PUT that ended like this may have made its object all the same.

    Also where the store says that the name is taken: an earlier attempt of ours may have done it.
    """
    if isinstance(cause, boto.ClientError):
        status = status_of(cause)
        return status in _UNSETTLED_STATUS or (status >= 500 and status != 501)  # noqa: PLR2004 HTTP
    return isinstance(cause, (upload.OutOfTimeError, *_MAYBE_LATER))


def status_of(cause: boto.ClientError) -> int:
    """The HTTP status, 0 where there was none."""
    return int(cause.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def code_of(cause: boto.ClientError) -> str:
    """The store's code. The answer to a HEAD has no body: there it is the status, as text."""
    return str(cause.response.get("Error", {}).get("Code", ""))


def no_credentials(place: Place) -> str:
    return (
        f"no credentials for bucket {place.bucket} at {place.endpoint}; set AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give this machine a role"
    )


def _answered(cause: boto.ClientError, place: Place) -> errors.RegenError:
    code, status, operation = code_of(cause), status_of(cause), cause.operation_name
    names = {"bucket": place.bucket, "endpoint": place.endpoint, "operation": operation}
    if code in _TRANSIENT:
        return errors.DestinationError(_TRANSIENT[code].format(**names))
    if code in _REFUSED:
        return errors.DestinationRefusedError(_REFUSED[code].format(**names))
    what = f"{place.endpoint} answered {operation} in bucket {place.bucket} with {code} ({status})"
    if status >= 500 or status in _TRANSIENT_STATUS:  # noqa: PLR2004 HTTP's own number
        return errors.DestinationError(f"{what}; it is tried again")
    return errors.DestinationRefusedError(f"{what}; see the store's manual for that code")


def _name(cause: BaseException) -> str:
    """The innermost type's name, which says most: HTTPClientError wraps what it does not know."""
    inner = getattr(cause, "kwargs", {}).get("error")
    return _name(inner) if isinstance(inner, BaseException) else type(cause).__name__


def _is_bad_certificate(cause: BaseException | None) -> bool:
    """urllib3 hands the reason on as an argument, botocore as a keyword, Python as a context."""
    if cause is None or isinstance(cause, ssl.SSLCertVerificationError):
        return cause is not None
    inner = (*cause.args, getattr(cause, "kwargs", {}).get("error"), getattr(cause, "reason", None))
    return any(_is_bad_certificate(each) for each in inner if isinstance(each, BaseException))
