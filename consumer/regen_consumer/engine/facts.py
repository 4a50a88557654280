"""What an engine says of itself: which server, which model, how it is configured. Pure."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from regen_consumer.engine import request, sampling

SGLANG_IDS_SINCE: Final = (0, 5, 18)
"""From this version on ``return_token_ids`` works; earlier ones ignore it silently."""

RECORDED: Final = (
    "version",
    "model_path",
    "served_model_name",
    "weight_version",
    "revision",
    "dtype",
    "quantization",
    "kv_cache_dtype",
    "context_length",
    "max_req_input_len",
    "max_total_num_tokens",
    "max_running_requests",
    "max_queued_requests",
    "tp_size",
    "dp_size",
    "pp_size",
    "reasoning_parser",
    "tool_call_parser",
    "chat_template",
    "sampling_defaults",
    "preferred_sampling_params",
    "speculative_algorithm",
    "speculative_draft_model_path",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "enable_hierarchical_cache",
    "hicache_ratio",
    "disable_radix_cache",
    "enable_metrics",
    "enable_cache_report",
    "random_seed",
)
"""What of SGLang's many arguments goes into the manifest. Never the whole: they hold its key."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """Null is unknown. ``context_length`` in tokens; ``models`` are the names it serves."""

    kind: str  # sglang or openai: how it is spoken to
    server: str  # sglang, llama.cpp, vllm or unknown
    models: tuple[str, ...]
    version: str | None = None
    weight_version: str | None = None
    model_path: str | None = None
    context_length: int | None = None
    reasoning_parser: str | None = None
    tool_call_parser: str | None = None
    max_running_requests: int | None = None
    speculative: str | None = None
    has_metrics: bool | None = None
    chat_template: str | None = None
    architecture: Any = None
    sampling_defaults: Mapping[str, float] = field(default_factory=dict)
    recorded: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dialect(self) -> request.Dialect:
        """What it takes in a request."""
        match self.server:
            case "sglang":
                ids = _version_of(self.version) >= SGLANG_IDS_SINCE
                return replace(request.SGLANG, token_ids=ids)
            case "llama.cpp":
                return request.LLAMA_CPP
            case "vllm":
                return replace(request.VLLM, token_ids=True)
            case _:
                return request.OPENAI

    def identity(self, model: str) -> dict[str, Any]:
        """Which model this is, as far as the engine tells: what a run is pinned to.

        ``config_sha256`` is over architecture and number formats, not over paths, which differ
        from machine to machine; ``template_sha256`` over the chat template.
        """
        config = {name: self.recorded.get(name) for name in ("dtype", "quantization")}
        config["architecture"] = self.architecture
        return {
            "name": model,
            "weight_version": self.weight_version,
            "config_sha256": _digest(orjson.dumps(config, option=orjson.OPT_SORT_KEYS)),
            "template_sha256": _digest((self.chat_template or "").encode())
            if self.chat_template
            else None,
        }


def is_sglang(server_info: Any) -> bool:
    """Is this what SGLang answers to ``/server_info``?"""
    return isinstance(server_info, dict) and {"model_path", "version"} <= server_info.keys()


def of_sglang(server_info: Mapping[str, Any], model_info: Any, models: Any) -> Facts:
    """Facts from ``/server_info``, ``/model_info`` and ``/v1/models``."""
    model_info = model_info if isinstance(model_info, dict) else {}
    listed = _listed(models)
    names = _names(listed) or _texts(server_info.get("served_model_name"))
    template = _text(server_info.get("chat_template"))
    preferred = server_info.get("preferred_sampling_params")
    return Facts(
        kind="sglang",
        server="sglang",
        models=names,
        version=_text(server_info.get("version")),
        weight_version=_text(model_info.get("weight_version", server_info.get("weight_version"))),
        model_path=_text(server_info.get("model_path")),
        context_length=_first_count(listed, "max_model_len")
        or _count(server_info.get("context_length")),
        reasoning_parser=_text(server_info.get("reasoning_parser")),
        tool_call_parser=_text(server_info.get("tool_call_parser")),
        max_running_requests=_count(server_info.get("max_running_requests")),
        speculative=_text(server_info.get("speculative_algorithm")),
        has_metrics=bool(server_info.get("enable_metrics")),
        chat_template=template,
        architecture=[model_info.get("model_type"), model_info.get("architectures")],
        sampling_defaults=sampling.known(_json(preferred)),
        recorded={name: server_info[name] for name in RECORDED if name in server_info},
    )


def of_openai(models: Any, props: Any, version: Any = None) -> Facts:
    """Facts from ``/v1/models``, llama.cpp's ``/props`` and vLLM's ``/version``."""
    listed = _listed(models)
    props = props if isinstance(props, dict) else {}
    owner = _text(listed[0].get("owned_by")) if listed else None
    server = {"llamacpp": "llama.cpp", "vllm": "vllm"}.get(owner or "", "unknown")
    defaults = props.get("default_generation_settings")
    defaults = defaults if isinstance(defaults, dict) else {}
    named = _text(version.get("version")) if isinstance(version, dict) else None
    return Facts(
        kind="openai",
        server="llama.cpp" if defaults else server,
        models=_names(listed),
        version=_text(props.get("build_info")) or named,
        model_path=_text(props.get("model_path")),
        context_length=_count(defaults.get("n_ctx")) or _first_count(listed, "max_model_len"),
        max_running_requests=_count(props.get("total_slots")),
        chat_template=_text(props.get("chat_template")),
        architecture=listed[0].get("meta") if listed else None,
        sampling_defaults=sampling.known(defaults.get("params")),
        recorded={"total_slots": props["total_slots"]} if "total_slots" in props else {},
    )


def _listed(models: Any) -> list[dict[str, Any]]:
    data = models.get("data") if isinstance(models, dict) else None
    return [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []


def _names(listed: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(name for entry in listed if (name := _text(entry.get("id"))))


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) and value else ()


def _first_count(listed: list[dict[str, Any]], name: str) -> int | None:
    return _count(listed[0].get(name)) if listed else None


def _json(value: Any) -> Any:
    """SGLang shows some arguments as the JSON text they were given as."""
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None


def _version_of(text: str | None) -> tuple[int, ...]:
    """``0.5.11`` as (0, 5, 11); what follows a number is not read, unknown is the oldest."""
    numbers = []
    for part in (text or "").split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def _digest(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()


def _count(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
