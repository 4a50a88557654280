import ssl
from typing import Any

import pytest
from botocore import exceptions as boto
from urllib3.exceptions import MaxRetryError, SSLError

from regen_common import errors
from regen_common.objects import s3_errors, upload

PLACE = s3_errors.Place(bucket="my-bucket", endpoint="https://s3.example.com")


def answered(
    code: str, status: int, operation: str = "PutObject", **extra: Any
) -> boto.ClientError:
    error = {"Code": code, "Message": "key AKIDLEAKED is odd", **extra}
    response: Any = {"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}
    return boto.ClientError(response, operation)


REFUSED = [
    ("NoSuchBucket", 404, "create it"),
    ("InvalidBucketName", 400, "correct --to"),
    ("AccessDenied", 403, "s3:PutObject, s3:GetObject and s3:ListBucket"),
    ("403", 403, "s3:GetObject"),
    ("InvalidAccessKeyId", 403, "AWS_ACCESS_KEY_ID"),
    ("SignatureDoesNotMatch", 403, "AWS_SECRET_ACCESS_KEY"),
    ("InvalidToken", 400, "AWS_SESSION_TOKEN"),
    ("PermanentRedirect", 301, "AWS_DEFAULT_REGION"),
    ("301", 301, "--endpoint-url"),
    ("AuthorizationHeaderMalformed", 400, "AWS_DEFAULT_REGION"),
    ("NotImplemented", 501, "If-None-Match"),
    ("InvalidRequest", 400, "InvalidRequest"),
    ("MethodNotAllowed", 405, "MethodNotAllowed"),
]
TRANSIENT = [
    ("ExpiredToken", 400, "renew"),
    ("RequestTimeTooSkewed", 403, "RequestTimeTooSkewed.*set the clock"),
    ("SlowDown", 503, "SlowDown"),
    ("503", 503, "503"),
    ("InternalError", 500, "InternalError"),
    ("ServiceUnavailable", 503, "ServiceUnavailable"),
    ("RequestTimeout", 400, "waited too long"),
    ("TooManyRequests", 429, "429"),
    ("BadDigest", 400, "damaged"),
    ("QuotaExceeded", 403, "full"),
    ("ConditionalRequestConflict", 409, "409"),
    ("PreconditionFailed", 412, "412"),
]


@pytest.mark.parametrize(("code", "status", "cure"), REFUSED)
def test_what_waiting_does_not_cure_is_refused_with_its_cure(
    code: str, status: int, cure: str
) -> None:
    error = s3_errors.error_of(answered(code, status), PLACE)
    assert isinstance(error, errors.DestinationRefusedError)
    assert cure in str(error)


@pytest.mark.parametrize(("code", "status", "text"), TRANSIENT)
def test_what_may_pass_is_transient(code: str, status: int, text: str) -> None:
    error = s3_errors.error_of(answered(code, status), PLACE)
    assert type(error) is errors.DestinationError
    with pytest.raises(errors.DestinationError, match=text):
        raise error


@pytest.mark.parametrize(("code", "status", "_"), REFUSED + TRANSIENT)
def test_every_message_is_one_line_that_names_the_endpoint_and_no_key(
    code: str, status: int, _: str
) -> None:
    message = str(s3_errors.error_of(answered(code, status, AWSAccessKeyId="AKIDLEAKED"), PLACE))
    assert PLACE.endpoint in message
    assert "AKIDLEAKED" not in message
    assert "\n" not in message
    assert "{" not in message


WITHOUT_ANSWER: list[tuple[Exception, type[errors.RegenError], str]] = [
    (boto.EndpointConnectionError(endpoint_url="x", error="y"), errors.DestinationError, "up"),
    (boto.ConnectTimeoutError(endpoint_url="x"), errors.DestinationError, "ConnectTimeoutError"),
    (boto.ReadTimeoutError(endpoint_url="x"), errors.DestinationError, "ReadTimeoutError"),
    (boto.ConnectionClosedError(endpoint_url="x"), errors.DestinationError, "network"),
    (boto.IncompleteReadError(actual_bytes=1, expected_bytes=2), errors.DestinationError, "up"),
    (boto.HTTPClientError(error=upload.OutOfTimeError()), errors.DestinationError, "OutOfTime"),
    (upload.OutOfTimeError(), errors.DestinationError, "OutOfTime"),
    (
        boto.CredentialRetrievalError(provider="x", error_msg="secret"),
        errors.DestinationError,
        "renew",
    ),
    (boto.NoCredentialsError(), errors.DestinationRefusedError, "AWS_ACCESS_KEY_ID"),
    (
        boto.PartialCredentialsError(provider="env", cred_var="x"),
        errors.DestinationRefusedError,
        "AWS_SECRET_ACCESS_KEY",
    ),
    (boto.ProfileNotFound(profile="x"), errors.DestinationRefusedError, "ProfileNotFound"),
    (boto.ParamValidationError(report="x"), errors.DestinationRefusedError, "ParamValidation"),
    (
        boto.SSLError(endpoint_url="x", error=SSLError("EOF occurred in violation of protocol")),
        errors.DestinationError,
        "SSLError",
    ),
    (
        boto.SSLError(
            endpoint_url="x", error=SSLError(ssl.SSLCertVerificationError("self-signed"))
        ),
        errors.DestinationRefusedError,
        "AWS_CA_BUNDLE",
    ),
    (
        boto.SSLError(
            endpoint_url="x",
            error=MaxRetryError(None, "/", SSLError(ssl.SSLCertVerificationError("expired"))),  # type: ignore[arg-type]
        ),
        errors.DestinationRefusedError,
        "AWS_CA_BUNDLE",
    ),
]


@pytest.mark.parametrize(("cause", "kind", "text"), WITHOUT_ANSWER)
def test_an_error_without_an_answer_is_told_by_its_type(
    cause: Exception, kind: type[errors.RegenError], text: str
) -> None:
    error = s3_errors.error_of(cause, PLACE)
    assert type(error) is kind
    assert text in str(error)
    assert PLACE.endpoint in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("cause", "unsettled"),
    [
        (answered("PreconditionFailed", 412), True),
        (answered("ConditionalRequestConflict", 409), True),
        (answered("SlowDown", 503), True),
        (answered("InternalError", 500), True),
        (boto.ReadTimeoutError(endpoint_url="x"), True),
        (boto.ConnectionClosedError(endpoint_url="x"), True),
        (boto.HTTPClientError(error=upload.OutOfTimeError()), True),
        (upload.OutOfTimeError(), True),
        (answered("NotImplemented", 501), False),
        (answered("AccessDenied", 403), False),
        (answered("ExpiredToken", 400), False),
        (boto.NoCredentialsError(), False),
        (boto.ParamValidationError(report="x"), False),
    ],
)
def test_only_an_end_that_leaves_the_object_open_is_unsettled(
    cause: Exception, unsettled: bool
) -> None:
    assert s3_errors.is_unsettled(cause) is unsettled


def test_the_cause_is_kept() -> None:
    cause = answered("SlowDown", 503)
    with pytest.raises(errors.DestinationError) as caught, s3_errors.translated(PLACE):
        raise cause
    assert caught.value.__cause__ is cause
