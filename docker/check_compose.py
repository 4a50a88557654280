"""Does ``compose.yaml`` keep what it promises? ``make lint`` asks; no Docker engine is needed.

Compose resolves the file as it does for a user, with ``.env.example`` filled in; the outcome is
looked at. One line and exit code 0 when all is well, one line per problem and 1 otherwise.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parent
COMPOSE: Final = Path(sys.executable).parent / "docker-compose"
TIMEOUT_S: Final = 60

PASSWORD: Final = "rightpassword0123456789"  # noqa: S105 - opens nothing
FILLED: Final = {
    "REDIS_PASSWORD": PASSWORD,
    "REGEN_TO": "s3://bucket/prefix",
    "INPUT_DIR": "/data",
    "INPUT": "sharegpt.json",
}
"""The settings that ``.env.example`` leaves to the user."""

GPUS: Final = 7
OWN_COMMANDS: Final = ("sink", "produce", "cli", *(f"consumer-{n}" for n in range(GPUS)))
VALKEY: Final = {
    "appendonly": "yes",
    "appendfsync": "everysec",
    "maxmemory-policy": "noeviction",
    "requirepass": "$VALKEYCLI_AUTH",
}
LOOPBACK: Final = ("127.0.0.1", "::1")

Service = Mapping[str, Any]
Services = Mapping[str, Service]


class CheckError(Exception):
    """The check itself can't go on; the message says why."""


def settings(**changes: str) -> str:
    """``.env.example`` as a user would fill it in, with ``changes``."""
    text = (FOLDER / ".env.example").read_text("utf-8")
    for name, value in {**FILLED, **changes}.items():
        text, count = re.subn(rf"^{name}=.*$", f"{name}={value}", text, flags=re.MULTILINE)
        if count != 1:
            raise CheckError(f".env.example has {name} {count} times; it needs it once")
    return text


def resolve(env: str) -> subprocess.CompletedProcess[str]:
    """What Compose makes of the file with these settings, as JSON on stdout."""
    if not COMPOSE.exists():
        raise CheckError(f"no {COMPOSE}; `make setup` installs it")
    command: list[str | Path] = [COMPOSE, "--file", FOLDER / "compose.yaml", "--profile", "*"]
    with tempfile.TemporaryDirectory() as folder:
        env_file = Path(folder, "env")
        env_file.write_text(env, "utf-8")
        return subprocess.run(
            [*command, "--env-file", env_file, "config", "--format", "json"],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
            # nothing of the caller's shell: it would beat the file
            env={"PATH": os.defpath, "HOME": folder},
        )


def services() -> Services:
    """All services as resolved with the filled-in example."""
    outcome = resolve(settings())
    if outcome.returncode:
        raise CheckError(f"compose.yaml does not resolve: {outcome.stderr.strip()}")
    found: Services = json.loads(outcome.stdout)["services"]
    return found


def problems(found: Services, *, image_user: str) -> Iterator[str]:
    """What is wrong with resolved services, one sentence each."""
    needed = {"valkey", *OWN_COMMANDS, *(f"engine-{n}" for n in range(GPUS))}
    if missing := sorted(needed - found.keys()):
        yield f"no service {', '.join(missing)}"
        return
    yield from _pairs(found)
    yield from _valkey(found["valkey"])
    for name, service in found.items():
        yield from _reachable(name, service)
        yield from _secrets(name, service)
    for name in OWN_COMMANDS:
        if found[name].get("user") != image_user:
            yield f"{name} runs as {found[name].get('user')}, the image's user is {image_user}"


def _pairs(found: Services) -> Iterator[str]:
    """Seven engines on seven GPUs, and to each its one consumer of the same number."""
    devices = {f"engine-{n}": _devices(found[f"engine-{n}"]) for n in range(GPUS)}
    for name, ids in devices.items():
        if len(ids) != 1:
            yield f"{name} reserves {len(ids)} GPUs; it needs one, by its number"
    if len({tuple(ids) for ids in devices.values()}) != GPUS:
        yield f"engines share a GPU: {devices}"
    engines = set()
    for n in range(GPUS):
        consumer = found[f"consumer-{n}"]
        flags = _flags(consumer)
        url = flags.get("--engine", "")
        engine = url.removeprefix("http://").removesuffix(":30000")
        engines.add(engine)
        if devices.get(engine) != [flags.get("--gpu")]:
            yield f"consumer-{n} is for GPU {flags.get('--gpu')}, but talks to {url}"
        grace_s = float(_environment(consumer).get("REGEN_GRACE") or "inf")
        if _seconds(consumer.get("stop_grace_period", "10s")) <= grace_s:
            yield f"consumer-{n} is killed before its grace (REGEN_GRACE) of {grace_s:g} s is over"
    if len(engines) != GPUS:
        yield f"consumers share an engine: {sorted(engines)}"


def _devices(engine: Service) -> list[str]:
    reservations = engine.get("deploy", {}).get("resources", {}).get("reservations", {})
    return [
        id_ for device in reservations.get("devices", ()) for id_ in device.get("device_ids", ())
    ]


def _flags(service: Service) -> dict[str, str]:
    words = (service.get("command") or [""])[1:]
    return dict(zip(words[::2], words[1::2], strict=False))


def _environment(service: Service) -> Mapping[str, str | None]:
    return service.get("environment") or {}


def _seconds(duration: str) -> float:
    """Of ``2m30s``, as Compose writes it."""
    units = {"h": 3600, "m": 60, "s": 1}
    return sum(float(n) * units[unit] for n, unit in re.findall(r"([\d.]+)([hms])", duration))


def _valkey(valkey: Service) -> Iterator[str]:
    # the configuration is a here-document in the command; Compose shows each $ as $$
    lines = (valkey.get("command") or [""])[-1].replace("$$", "$").splitlines()
    given = dict(line.split(maxsplit=1) for line in lines if " " in line)
    for name, value in VALKEY.items():
        if given.get(name) != value:
            yield f"valkey has {name} {given.get(name)}; Regen needs {value}"
    if _environment(valkey).get("VALKEYCLI_AUTH") != PASSWORD:
        yield "valkey's password is not REDIS_PASSWORD"
    if valkey.get("user") in {None, "", "0", "root"}:
        yield "valkey runs as root"


def _reachable(name: str, service: Service) -> Iterator[str]:
    """Nothing listens beyond this machine."""
    for port in service.get("ports", ()):
        if port.get("host_ip") not in LOOPBACK:
            yield f"{name} publishes port {port.get('target')} to everybody; write 127.0.0.1:..."
    if service.get("network_mode") == "host":
        yield f"{name} is on the host's network, where its ports are everybody's"
    if service.get("privileged"):
        yield f"{name} is privileged"


def _secrets(name: str, service: Service) -> Iterator[str]:
    """A secret in a command shows in ``ps``."""
    rest = {key: value for key, value in service.items() if key != "environment"}
    if PASSWORD in json.dumps(rest):
        yield f"{name} has the password outside its environment"


def refusals() -> Iterator[str]:
    """An empty password has to stop Compose, with a message that says so."""
    outcome = resolve(settings(REDIS_PASSWORD=""))
    if outcome.returncode == 0:
        yield "compose.yaml resolves without REDIS_PASSWORD"
    elif "REDIS_PASSWORD is missing" not in outcome.stderr:
        yield f"without REDIS_PASSWORD Compose does not say so, but: {outcome.stderr.strip()}"


def image_user() -> str:
    """Whom the Dockerfile's last stage runs as."""
    text = (FOLDER / "Dockerfile").read_text("utf-8")
    users: list[str] = re.findall(r"^USER (\S+)$", text, re.MULTILINE)
    if not users or users[-1].partition(":")[0] in {"0", "root"}:
        raise CheckError("the image runs as root: its Dockerfile needs a USER")
    return users[-1]


def main() -> int:
    try:
        found = [*problems(services(), image_user=image_user()), *refusals()]
    except (CheckError, OSError, subprocess.TimeoutExpired) as error:
        found = [str(error)]
    for problem in found:
        sys.stderr.write(f"docker/compose.yaml: {problem}\n")
    if not found:
        sys.stdout.write(f"docker/compose.yaml: {GPUS} engines and consumers, all as promised\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
