"""Refusals and their classes: every one that was recorded from SGLang, and others'."""

from pathlib import Path

import orjson
import pytest

from regen_consumer.engine import faults
from regen_consumer.engine.faults import Blame, Fault

RECORDED = orjson.loads((Path(__file__).parent / "recorded_errors.json").read_bytes())


def bytes_of(body):
    return body.encode() if isinstance(body, str) else orjson.dumps(body)


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda row: row["cases"][0])
def test_every_recorded_refusal_has_its_class(recorded):
    headers = {"content-type": recorded["content_type"] or ""}
    fault = faults.of_refusal(recorded["status"], headers, bytes_of(recorded["body"]))
    assert (fault.klass, fault.blame.value) == (recorded["class"], recorded["blame"])


OTHERS = [
    # status, message -> class
    (
        400,
        "This model's maximum context length is 4096 tokens. However, you asked",
        "context_length",
    ),
    (
        400,
        "request (9031 tokens) exceeds the available context size (2048 tokens)",
        "context_length",
    ),
    (400, "No user query found in messages.", "template"),
    (400, "System message must be at the beginning.", "template"),
    (400, "Unexpected message role.", "template"),
    (500, "Internal server error: jinja2.exceptions.UndefinedError: x", "template"),
    (400, "something that no table knows", "bad_request"),
    (422, "something that no table knows", "bad_request"),
    (413, "too large", "bad_request"),
    (404, "The model `m` does not exist.", "unknown_model"),
    (404, "File Not Found", "wrong_url"),
    (302, "", "wrong_url"),
    (403, "Forbidden", "unauthorized"),
    (429, "slow down", "busy"),
    (503, "The request queue is full.", "busy"),
    (503, "Loading model", "engine_error"),
    (500, "out of memory", "engine_error"),
    (502, "<html>Bad Gateway</html>", "engine_error"),
    (504, "<html>Gateway Time-out</html>", "stalled"),
    (418, "a teapot", "engine_error"),
]


@pytest.mark.parametrize(("status", "message", "klass"), OTHERS)
def test_refusals_of_other_servers_have_their_class_too(status, message, klass):
    body = orjson.dumps({"error": {"message": message, "code": status}})
    assert faults.of_refusal(status, {}, body).klass == klass


@pytest.mark.parametrize(
    ("header", "retry_after_s"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-1", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("1e9", 3600),
    ],
)
def test_a_wait_that_the_engine_asks_for_is_kept_within_reason(header, retry_after_s):
    fault = faults.of_refusal(503, {"retry-after": header}, b"")
    assert fault.blame is Blame.PASSING
    assert fault.retry_after_s == retry_after_s


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":"Unauthorized"}', "Unauthorized"),
        (b'{"error":{"message":"no"}}', "no"),
        (b'{"object":"error","message":"no"}', "no"),
        (b'{"detail":[{"loc":["body"]}]}', '[{"loc":["body"]}]'),
        (b"Internal Server Error", "Internal Server Error"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"", ""),
        (b"null", "null"),
    ],
)
def test_the_reason_is_found_in_every_shape_of_error_body(body, message):
    assert faults.message_of(body) == message


def test_a_fault_is_one_short_line_whatever_the_engine_said():
    fault = Fault("engine_error", "two\nlines\t" + "x" * 1000 + "\ud800")
    assert len(str(fault)) == faults.DETAIL_CHARS_MAX
    assert "\n" not in str(fault)
    assert str(fault).startswith("two lines xxx")


def test_a_lone_surrogate_in_a_reason_can_be_written_down():
    assert str(Fault("cut", "bad \ud800 text")).encode()


def test_every_pattern_leads_to_a_class_that_exists():
    assert {pattern.klass for pattern in faults.PATTERNS} <= faults.CLASSES.keys()
