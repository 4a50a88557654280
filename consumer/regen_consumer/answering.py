"""From a leased job to its record: prompt out of the store, question, answer, labels, line."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from regen_common import log
from regen_common.clock import Clock, iso_utc
from regen_common.queue import shapes
from regen_common.records import labels
from regen_common.run import config
from regen_common.store.schema import Prompt
from regen_consumer import quality, record
from regen_consumer.engine import answer, preflight, request
from regen_consumer.engine.answer import Answer
from regen_consumer.engine.client import Engine
from regen_consumer.engine.faults import Fault
from regen_consumer.engine.profile import EngineProfile, Wanted, wanted_of
from regen_consumer.engine.progress import Progress
from regen_consumer.prompts import Prompts
from regen_consumer.rate import TokenRate

SEED_BITS: Final = 31


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Whose records these are."""

    run: str
    host: str
    gpu: int


def prompt_seed(base: int, index: int, round_: int) -> int:
    """A seed for one prompt: the same for the same run seed, index and round."""
    digest = hashlib.sha256(f"{base}:{index}:{round_}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - SEED_BITS)


class Answering:
    """Asks one engine on behalf of one run."""

    def __init__(
        self, engine: Engine, prompts: Prompts, *, identity: Identity, clock: Clock
    ) -> None:
        self._engine = engine
        self._prompts = prompts
        self._identity = identity
        self._clock = clock
        self._config: config.Config | None = None
        self._wanted: Wanted | None = None
        self._profile: EngineProfile | None = None
        self._rate = TokenRate()
        self._progress: Progress | None = None

    # --- getting ready

    async def get_ready(self, now: config.Config) -> None:
        """Prove that the engine can serve the run as it is configured.

        Raises :class:`regen_common.errors.EngineRefusedError`, or :class:`Fault` for now.
        """
        wanted = wanted_of(now)
        self._profile = await preflight.preflight(self._engine, wanted)
        self._config, self._wanted = now, wanted
        for warning in self._profile.warnings:
            log.warning("engine_concern", engine=self._engine.url, about=warning)

    async def configure(self, now: config.Config) -> None:
        """Ask under a newer configuration; what changes how answers look is proved again.

        Raises as :meth:`get_ready`.
        """
        wanted = wanted_of(now)
        if self._wanted is None or replace(wanted, max_tokens=1) != replace(
            self._wanted, max_tokens=1
        ):
            await self.get_ready(now)
        self._config, self._wanted = now, wanted

    def model_pin(self) -> dict[str, Any]:
        """What the run is pinned to by its first preflight."""
        assert self._profile
        return self._profile.identity

    def shown(self, now_s: float) -> dict[str, Any]:
        """What the status shows of this engine."""
        facts = self._profile.facts if self._profile else None
        progress = self._progress
        return {
            "engine": self._engine.url,
            "kind": facts.server if facts else None,
            "model": self._profile.model if self._profile else None,
            "version": facts.version if facts else None,
            "weight_version": facts.weight_version if facts else None,
            "output_tokens_per_s": self._rate.per_s(now_s),
            "accept_length": progress.accept_length if progress else None,
            "kv_usage": progress.kv_usage if progress else None,
            "queue": progress.waiting if progress else None,
        }

    async def look(self) -> None:
        """Take the engine's own figures for :meth:`shown`."""
        self._progress = await self._engine.progress()

    # --- answering

    async def answer(self, job: shapes.Claimed, *, attempt: int) -> shapes.Finished:
        """One attempt at one prompt.

        Raises :class:`Fault`; :class:`regen_common.errors.StoreError` where the prompt can't be
        read. Cancelled: the request is aborted on the engine.
        """
        prompt = await self._prompts.get(job.lease.index)
        assert self._profile
        assert self._config
        profile, now = self._profile, self._config
        question = self._question(job, prompt, profile, now)
        rid = request.new_rid()
        began_s = self._clock.time_s()
        response = await self._engine.complete(
            request.body(question, profile.dialect, rid=rid), rid=rid
        )
        found = answer.read(response, model=profile.model, opening=profile.opening)
        tokens = found.usage.completion_tokens or 0
        self._rate.add(self._clock.monotonic_s(), tokens)
        found_labels = quality.labels(found.completion, found.usage, thinks=profile.thinks)
        line = self._line(
            job,
            prompt,
            question,
            profile,
            found,
            attempt=attempt,
            found_labels=found_labels,
            began_s=began_s,
            latency_s=response.latency_s,
        )
        return shapes.Finished(
            lease=job.lease,
            round=job.round,
            mask=labels.mask_of(found_labels),
            output_tokens=tokens,
            latency_s=response.latency_s,
            body=line,
        )

    def _question(
        self,
        job: shapes.Claimed,
        prompt: Prompt,
        profile: EngineProfile,
        now: config.Config,
    ) -> request.Question:
        wanted = self._wanted
        assert wanted
        base = now["seed"]
        return request.Question(
            model=profile.model,
            messages=prompt.messages_json,
            tools=prompt.tools_json,
            sampling=profile.sampling.values,
            max_tokens=wanted.max_tokens,
            thinking=wanted.thinking_flag,
            seed=None if base is None else prompt_seed(base, prompt.index, job.round),
            template_kwargs=wanted.template_kwargs,
            extra_body=wanted.extra_body,
        )

    def _line(
        self,
        job: shapes.Claimed,
        prompt: Prompt,
        question: request.Question,
        profile: EngineProfile,
        found: Answer,
        *,
        attempt: int,
        found_labels: tuple[str, ...],
        began_s: float,
        latency_s: float,
    ) -> bytes:
        sampling = dict(question.sampling)
        if question.seed is not None:
            sampling["seed"] = question.seed
        made = record.Record(
            index=prompt.index,
            id=prompt.id,
            source=prompt.source,
            run=self._identity.run,
            round=job.round,
            attempt=attempt,
            prompt_sha256=prompt.sha256,
            category=prompt.category,
            multi_turn=prompt.multi_turn,
            messages=orjson.Fragment(prompt.messages_json),
            tools=None if prompt.tools_json is None else orjson.Fragment(prompt.tools_json),
            completion=found.completion,
            turns=None,
            usage=found.usage,
            quality=list(found_labels),
            sampling={**sampling, "max_tokens": question.max_tokens},
            engine=record.EngineFacts(
                host=self._identity.host,
                gpu=self._identity.gpu,
                kind=self._engine.kind,
                model=found.model or profile.model,
                weight_version=found.weight_version or profile.facts.weight_version,
                version=profile.facts.version,
                spec_accept_length=self._progress.accept_length if self._progress else None,
            ),
            started_at=iso_utc(began_s),
            latency_s=round(latency_s, 3),
        )
        try:
            return record.encode(made)
        except TypeError as error:
            raise Fault("invalid_answer", f"the answer can't be written: {error}") from error
