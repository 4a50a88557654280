from pathlib import Path

import pytest

from regen_common import errors
from regen_common.objects import open_objects

SECRET = "wJalrXUtnFEMIexample"


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _forget_credentials(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDUNITTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


def _forget_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "AWS_REQUEST_CHECKSUM_CALCULATION",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))


def test_a_folder_is_opened_by_its_path_its_url_and_relative_to_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    wanted = str(tmp_path / "my out")
    for url in ("my out", "./my out", wanted, f"file://{tmp_path}/my%20out", "~/my out"):
        assert open_objects(url).url == wanted
        assert str(open_objects(url)) == wanted


def test_opening_writes_nothing(tmp_path: Path) -> None:
    open_objects(str(tmp_path / "out"))
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("S3://bucket/a/b/", "s3://bucket/a/b"),
    ],
)
def test_a_bucket_is_shown_in_a_form_that_opens_it_again(url: str, shown: str) -> None:
    objects = open_objects(url, endpoint_url="http://127.0.0.1:9")
    assert objects.url == str(objects) == shown
    objects.close()


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize(
    "url",
    [
        "",
        " ",
        "gs://bucket/x",
        "https://bucket.s3.amazonaws.com/x",
        "file://elsewhere/x",
        "s3://",
        "s3:///x",
        "s3://b/x",
        f"s3://AKIDUNITTEST:{SECRET}@bucket/x",
        f"gs://user:{SECRET}@bucket/x",
    ],
)
def test_what_is_no_destination_is_a_usage_error_that_shows_no_secret(url: str) -> None:
    with pytest.raises(errors.UsageError) as caught:
        open_objects(url)
    assert SECRET not in str(caught.value)


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize(
    "endpoint_url", ["127.0.0.1:8333", "s3.example.com", "ftp://x", f"http://user:{SECRET}@host/"]
)
def test_what_is_no_endpoint_is_a_usage_error_that_shows_no_secret(endpoint_url: str) -> None:
    with pytest.raises(errors.UsageError) as caught:
        open_objects("s3://bucket", endpoint_url=endpoint_url)
    assert SECRET not in str(caught.value)


@pytest.mark.usefixtures("credentials")
def test_unknown_checksums_are_a_usage_error() -> None:
    with pytest.raises(errors.UsageError, match="when_required, when_supported"):
        open_objects("s3://bucket", checksums="always")


def test_without_credentials_a_bucket_is_refused_with_the_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _forget_credentials(monkeypatch, tmp_path)
    with pytest.raises(errors.DestinationRefusedError, match=r"bucket.*AWS_ACCESS_KEY_ID"):
        open_objects("s3://bucket", endpoint_url="http://127.0.0.1:9")


def test_half_a_credential_is_refused_with_the_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _forget_credentials(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDUNITTEST")
    with pytest.raises(errors.DestinationRefusedError, match="AWS_SECRET_ACCESS_KEY"):
        open_objects("s3://bucket", endpoint_url="http://127.0.0.1:9")


def test_an_unknown_profile_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _forget_credentials(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(errors.DestinationRefusedError, match="ProfileNotFound"):
        open_objects("s3://bucket")


@pytest.mark.usefixtures("credentials")
def test_the_secret_key_never_shows_in_a_log_line_once_a_bucket_is_open() -> None:
    from regen_common import log

    open_objects("s3://bucket", endpoint_url="http://127.0.0.1:9").close()
    assert SECRET not in log.scrub(f"signing with {SECRET} failed")
