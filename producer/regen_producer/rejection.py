"""Why an input row can't become a prompt: the classes, and the error that carries one."""

from typing import Final

INVALID_JSON: Final = "invalid_json"
INVALID_UTF8: Final = "invalid_utf8"
ROW_NOT_OBJECT: Final = "row_not_object"
MISSING_CONVERSATIONS: Final = "missing_conversations"
BAD_CONVERSATIONS: Final = "bad_conversations"
EMPTY_CONVERSATION: Final = "empty_conversation"
BAD_MESSAGE: Final = "bad_message"
MISSING_ROLE_KEY: Final = "missing_role_key"
UNKNOWN_ROLE: Final = "unknown_role"
NULL_CONTENT: Final = "null_content"
BAD_CONTENT_TYPE: Final = "bad_content_type"
MULTIMODAL_UNSUPPORTED: Final = "multimodal_unsupported"
BLANK_USER: Final = "blank_user"
NO_USER_TURN: Final = "no_user_turn"
SYSTEM_NOT_FIRST: Final = "system_not_first"
BAD_TOOLS: Final = "bad_tools"
LONE_SURROGATE: Final = "lone_surrogate"
TOO_LONG: Final = "too_long"
DUPLICATE_PROMPT: Final = "duplicate_prompt"

CLASSES: Final = (
    INVALID_JSON,
    INVALID_UTF8,
    ROW_NOT_OBJECT,
    MISSING_CONVERSATIONS,
    BAD_CONVERSATIONS,
    EMPTY_CONVERSATION,
    BAD_MESSAGE,
    MISSING_ROLE_KEY,
    UNKNOWN_ROLE,
    NULL_CONTENT,
    BAD_CONTENT_TYPE,
    MULTIMODAL_UNSUPPORTED,
    BLANK_USER,
    NO_USER_TURN,
    SYSTEM_NOT_FIRST,
    BAD_TOOLS,
    LONE_SURROGATE,
    TOO_LONG,
    DUPLICATE_PROMPT,
)
"""All of them, in the order in which a row is looked at."""

DETAIL_CHARS_MAX: Final = 200


class RejectedRowError(Exception):
    """One row is no prompt. Carries the class and what exactly is wrong with this row."""

    def __init__(self, error: str, detail: str) -> None:
        super().__init__(f"{error}: {detail}")
        self.error = error
        self.detail = shown(detail)


def shown(text: str) -> str:
    """``text`` short enough for a report, and writable as UTF-8."""
    short = text if len(text) <= DETAIL_CHARS_MAX else text[: DETAIL_CHARS_MAX - 3] + "..."
    return short.encode("utf-8", "backslashreplace").decode("utf-8")
