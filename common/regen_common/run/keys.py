"""Every Redis key, in one table. ``{p}`` is ``regen:{run}``; RQ's own keys keep RQ's names.

The scripts in ``queue/lua`` build the same names in ``prelude.lua``; a test holds the two together.
Nothing scans: each key below is reached by its name.

=========================  ==========  ===========================================================
key                        type        meaning
=========================  ==========  ===========================================================
``{p}:config``             hash        ``version``, ``history``; ``key:NAME`` one JSON value per
                                       configuration key; ``input``, ``rejected``, ``plan:CATEGORY``
``{p}:epoch``              string      the random word of this life of the run; no epoch, no run
``{p}:halt``               string      JSON ``{why, detail, at}`` while the run is halted
``{p}:cursor:{category}``  string      the next index whose enqueueing is undecided
``{p}:bits:{name}``        bitmap      by index: ``tools multi_turn rejected enqueued accepted
                                       done`` and one per quality label
``{p}:rounds``             u4 array    by index: the present round; absent until the first requeue
``{p}:redo``               set         job ids sent again whose new answer is not committed yet
``{p}:results``            stream      accepted records that no commit has taken yet
``{p}:cut``                string      stream id up to which records belong to an intent
``{p}:intents``            hash        object name -> JSON of the open intent
``{p}:ledger``             hash        object name -> JSON ``{count, bytes, at, indices}``
``{p}:stats``              hash        counters (``queue/lua/prelude.lua`` lists them)
``{p}:failures``           hash        job id -> JSON of why it failed; joined by membership
``{p}:window``             list        label masks of the newest answers, newest first
``{p}:gpu:{host}:{n}``     hash, TTL   what a consumer says of itself and its engine
``{p}:gpus``               zset        ``{host}:{n}`` by when it was last seen
``{p}:rate``               list        ``time answers tokens`` samples, newest first
``{p}:sweep``              string, TTL whose turn it is to look for jobs that are in no place
=========================  ==========  ===========================================================
"""

import re
from dataclasses import dataclass
from typing import Final

from regen_common import errors

CATEGORIES: Final = ("tools", "chat")
"""The queues of a run, by what their prompts carry: tool definitions, or none."""

RUN_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
RQ_SUSPENDED: Final = "rq:suspended"


@dataclass(frozen=True, kw_only=True, slots=True)
class Keys:
    """The names of one run's keys."""

    run: str

    def __post_init__(self) -> None:
        if not RUN_NAME.fullmatch(self.run):
            raise errors.UsageError(
                f"--run {self.run!r}: a run's name is 1 to 40 of a-z 0-9 _ -, "
                "and begins with a letter or digit"
            )

    def _key(self, rest: str) -> str:
        return f"regen:{self.run}:{rest}"

    @property
    def config(self) -> str:
        return self._key("config")

    @property
    def epoch(self) -> str:
        return self._key("epoch")

    @property
    def halt(self) -> str:
        return self._key("halt")

    def cursor(self, category: str) -> str:
        return self._key(f"cursor:{category}")

    def bits(self, name: str) -> str:
        return self._key(f"bits:{name}")

    @property
    def rounds(self) -> str:
        return self._key("rounds")

    @property
    def redo(self) -> str:
        return self._key("redo")

    @property
    def results(self) -> str:
        return self._key("results")

    @property
    def cut(self) -> str:
        return self._key("cut")

    @property
    def intents(self) -> str:
        return self._key("intents")

    @property
    def ledger(self) -> str:
        return self._key("ledger")

    @property
    def stats(self) -> str:
        return self._key("stats")

    @property
    def failures(self) -> str:
        return self._key("failures")

    @property
    def window(self) -> str:
        return self._key("window")

    def gpu(self, host: str, number: int) -> str:
        return self._key(f"gpu:{host}:{number}")

    @property
    def gpus(self) -> str:
        return self._key("gpus")

    @property
    def rate(self) -> str:
        return self._key("rate")

    @property
    def sweep(self) -> str:
        return self._key("sweep")

    def staged_bits(self, token: str, name: str) -> str:
        """Where a bitmap waits until ``create`` moves it in (``{p}:new:...``, expires)."""
        return self._key(f"new:{token}:{name}")

    def queue(self, category: str) -> str:
        """RQ's name of the category's queue, as ``rq info`` shows it."""
        return f"{self.run}-{category}"

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(self.queue(category) for category in CATEGORIES)

    def job_id(self, index: int) -> str:
        return f"{self.run}-{index}"

    def job(self, index: int) -> str:
        return f"rq:job:{self.job_id(index)}"


def index_of(job_id: str) -> int:
    """The prompt's index in an RQ job id ``{run}-{index}``."""
    return int(job_id.rpartition("-")[2])


def category_of(queue: str) -> str:
    """The category in an RQ queue name ``{run}-{category}``."""
    return queue.rpartition("-")[2]


def rq_registry(registry: str, queue: str) -> str:
    """RQ's key of ``registry`` (``wip``, ``failed``, ``canceled`` ...) of ``queue``."""
    return f"rq:{registry}:{queue}"


def rq_queue(queue: str) -> str:
    return f"rq:queue:{queue}"
