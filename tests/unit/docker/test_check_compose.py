"""The check of ``docker/compose.yaml`` finds what it looks for, and the file keeps its promises."""

import copy
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from regen_common import cli

DOCKER = Path(__file__).parents[3] / "docker"
USER = "10001:10001"

Services = dict[str, Any]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_compose", DOCKER / "check_compose.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check = _load()


@pytest.fixture(scope="module")
def resolved() -> Services:
    return dict(check.services())


def test_the_file_has_no_problem(resolved: Services) -> None:
    assert list(check.problems(resolved, image_user=check.image_user())) == []


def _devices(services: Services, engine: str) -> list[Any]:
    devices: list[Any] = services[engine]["deploy"]["resources"]["reservations"]["devices"]
    return devices


def _share_a_gpu(services: Services) -> None:
    _devices(services, "engine-1")[0]["device_ids"] = ["0"]


def _take_any_gpu(services: Services) -> None:
    del _devices(services, "engine-2")[0]["device_ids"]


def _swap_engines(services: Services) -> None:
    services["consumer-3"]["command"][-1] = "http://engine-4:30000"


def _number_twice(services: Services) -> None:
    services["consumer-5"]["command"][2] = "4"


def _lose_a_consumer(services: Services) -> None:
    del services["consumer-6"]


def _kill_early(services: Services) -> None:
    services["consumer-0"]["stop_grace_period"] = "2m0s"


def _kill_at_dockers_default(services: Services) -> None:
    del services["consumer-0"]["stop_grace_period"]


def _edit_valkey(old: str, new: str) -> Callable[[Services], None]:
    def edit(services: Services) -> None:
        assert old in services["valkey"]["command"][-1]
        services["valkey"]["command"][-1] = services["valkey"]["command"][-1].replace(old, new)

    return edit


def _other_password(services: Services) -> None:
    services["valkey"]["environment"]["VALKEYCLI_AUTH"] = "secret"


def _publish(port: dict[str, Any]) -> Callable[[Services], None]:
    def edit(services: Services) -> None:
        services["valkey"]["ports"] = [port]

    return edit


def _host_network(services: Services) -> None:
    services["engine-0"]["network_mode"] = "host"


def _set_user(service: str, user: str | None) -> Callable[[Services], None]:
    def edit(services: Services) -> None:
        services[service]["user"] = user

    return edit


def _tell_the_password(services: Services) -> None:
    services["sink"]["command"] += ["--redis", f"redis://:{check.PASSWORD}@valkey"]


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        (_share_a_gpu, "engines share a GPU"),
        (_take_any_gpu, "engine-2 reserves 0 GPUs"),
        (_swap_engines, "consumers share an engine"),
        (_number_twice, "consumer-5 is for GPU 4, but talks to http://engine-5:30000"),
        (_lose_a_consumer, "no service consumer-6"),
        (_kill_early, "consumer-0 is killed before its grace"),
        (_kill_at_dockers_default, "consumer-0 is killed before its grace"),
        (_edit_valkey("appendonly yes", "appendonly no"), "valkey has appendonly no"),
        (_edit_valkey("everysec", "no"), "valkey has appendfsync no"),
        (_edit_valkey("noeviction", "allkeys-lru"), "valkey has maxmemory-policy allkeys-lru"),
        (_edit_valkey("requirepass", "#"), "valkey has requirepass None"),
        (_other_password, "valkey's password is not REDIS_PASSWORD"),
        (_publish({"target": 6379}), "valkey publishes port 6379 to everybody"),
        (_publish({"target": 6379, "host_ip": "0.0.0.0"}), "valkey publishes port 6379"),
        (_host_network, "engine-0 is on the host's network"),
        (_set_user("sink", None), "sink runs as None"),
        (_set_user("consumer-2", "0:0"), "consumer-2 runs as 0:0"),
        (_set_user("valkey", "root"), "valkey runs as root"),
        (_tell_the_password, "sink has the password outside its environment"),
    ],
)
def test_a_broken_promise_is_named(
    resolved: Services, edit: Callable[[Services], None], found: str
) -> None:
    services = copy.deepcopy(resolved)
    edit(services)
    problems = list(check.problems(services, image_user=USER))
    assert any(found in problem for problem in problems), problems


def test_a_port_on_the_loopback_address_is_no_problem(resolved: Services) -> None:
    services = copy.deepcopy(resolved)
    _publish({"target": 6379, "host_ip": "127.0.0.1"})(services)
    assert list(check.problems(services, image_user=USER)) == []


@pytest.mark.parametrize("name", ["REDIS_PASSWORD", "REGEN_TO", "INPUT_DIR", "INPUT"])
def test_compose_refuses_to_go_on_without(name: str) -> None:
    outcome = check.resolve(check.settings(**{name: ""}))
    assert outcome.returncode != 0
    assert f"required variable {name} is missing" in outcome.stderr


def test_other_gpus_move_engines_and_consumers_together() -> None:
    outcome = check.resolve(check.settings(GPU_0="7"))
    services = check.json.loads(outcome.stdout)["services"]
    assert _devices(services, "engine-0")[0]["device_ids"] == ["7"]
    assert services["consumer-0"]["command"][1:3] == ["--gpu", "7"]
    assert list(check.problems(services, image_user=USER)) == []


def test_every_setting_is_explained_and_every_explained_setting_is_used() -> None:
    compose = (DOCKER / "compose.yaml").read_text()
    example = (DOCKER / ".env.example").read_text()
    used = set(re.findall(r"(?<!\$)\$\{(\w+)", compose))
    passed_on = set(re.findall(r"^ +([A-Z_]+):$", compose, re.MULTILINE))
    explained = set(re.findall(r"^#?([A-Z_0-9]+)=", example, re.MULTILINE))
    assert explained == used | passed_on


def test_the_files_own_defaults_are_those_of_the_example() -> None:
    compose = (DOCKER / "compose.yaml").read_text()
    example = dict(
        re.findall(r"^#?([A-Z_0-9]+)=(.*)$", (DOCKER / ".env.example").read_text(), re.MULTILINE)
    )
    defaults = set(re.findall(r"\$\{(\w+):-([^}]*)\}", compose))
    assert {(name, example[name]) for name, _ in defaults} == defaults


def test_every_regen_variable_is_some_commands_flag(resolved: Services) -> None:
    names = {
        name
        for service in resolved.values()
        for name in service.get("environment") or {}
        if name.startswith("REGEN_") and name != "REGEN_REDIS_URL"
    }
    flags = {name.removeprefix("REGEN_").lower().replace("_", "-") for name in names}
    assert flags
    assert flags <= cli.FLAGS


def test_only_what_writes_to_the_destination_gets_its_keys(resolved: Services) -> None:
    with_keys = {
        name
        for name, service in resolved.items()
        if "AWS_SECRET_ACCESS_KEY" in (service.get("environment") or {})
    }
    assert with_keys == {"sink", "produce", "cli"}
