"""Tool definitions in the text of a prompt, and texts that only talk about tools."""

import json
import time

import pytest

from regen_producer import tool_text

SCHEMA = {"type": "object", "properties": {"loaf": {"type": "string"}}, "required": ["loaf"]}
BAKE = {"name": "bake", "description": "Bake a loaf", "parameters": SCHEMA}
SENT = {"type": "function", "function": BAKE}
JSON = json.dumps(BAKE)
OPENAI = json.dumps(SENT)
PRETTY = json.dumps(BAKE, indent=4)

REACT = """Answer as best you can. You have access to the following tools:

oven: bakes what it is given

Use the following format:
Thought: what to do
Action: the action to take, should be one of [oven]
Action Input: the input to the action"""

NAMESPACE = """# Tools
## functions
namespace functions {
// Bake a loaf
type bake = (_: { loaf: string }) => any;
} // namespace functions"""

SYSTEM = {
    "hermes": ("tools_tag", f"Signatures are within <tools></tools> tags:\n<tools> {OPENAI} </tools>"),
    "hermes, a list": ("tools_tag", f"<tools>\n[{OPENAI}]\n</tools>"),
    "xml": ("tools_tag", "<tools>\n<function>\n<name>bake</name>\n</function>\n</tools>"),
    "old anthropic": (
        "tools_tag",
        "<tools>\n<tool_description>\n<tool_name>bake</tool_name>\n</tool_description>\n</tools>",
    ),
    "functions block": ("tools_tag", f"<functions>\n<function>{JSON}</function>\n</functions>"),
    "mistral": ("available_tools", f"[AVAILABLE_TOOLS] [{OPENAI}][/AVAILABLE_TOOLS]"),
    "tokens": ("tool_list_token", f"List of tools: <|tool_list_start|>[{JSON}]<|tool_list_end|>"),
    "glaive": ("json_schema", f"You have access to the following functions -\n{PRETTY}\n{PRETTY}"),
    "a list in prose": ("json_schema", f"Here are functions you can invoke: [{JSON}]. Return a call."),
    "no words at all": ("json_schema", JSON),
    "python's repr": ("json_schema", f"You have access of the following tools: {BAKE!r}"),
    "escaped": ("json_schema", f"Tools: {json.dumps(JSON)}"),
    "no parameters": ("json_schema", 'Functions: {"name": "joke", "description": "d", "parameters": {}}'),
    "anthropic": ("json_schema", json.dumps({"name": "bake", "input_schema": SCHEMA})),
    "xlam": ("json_schema", json.dumps({"name": "bake", "parameters": {"loaf": {"type": "str"}}})),
    "chinese": ("json_schema", f"# 可用工具\n\n## bake\n\n{PRETTY}\n在调用上述函数时，请使用 Json 格式。"),
    "typescript": ("typescript", NAMESPACE),
    "react": ("react", REACT),
    "python": (
        "python_signatures",
        'You may call these Python functions:\n\ndef bake(loaf: str) -> bool:\n    """Bake."""',
    ),
    "signatures": ("signature_list", "You can use these tools:\n- bake(loaf): bakes a loaf\n- rest()"),
    "markdown": (
        "markdown_docs",
        "# Tools\n\n## bake\nDescription: bake a loaf\nParameters:\n- loaf: (required)",
    ),
    "yaml": ("yaml", "Tools:\n- name: bake\n  description: Bake a loaf\n  parameters:\n    loaf: string"),
    "llama built-in": ("ipython", "Environment: ipython\nTools: brave_search\n\nBe helpful."),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), SYSTEM.values(), ids=SYSTEM.keys())
def test_definitions_in_a_system_text_are_found(name: str, text: str) -> None:
    messages = [{"role": "system", "content": text}, {"role": "user", "content": "A rye, please."}]
    assert tool_text.detect(messages) == name


USER = {
    "llama 3": f"Given the following functions, respond with a JSON for a function call.\n\n{OPENAI}\n\nBake.",
    "hermes": f"<tools>\n{OPENAI}\n</tools>\nBake a rye.",
    "mistral": f"[AVAILABLE_TOOLS] [{OPENAI}][/AVAILABLE_TOOLS]Bake a rye.",
    "access": f"You have access to the following tools:\n{PRETTY}\nBake a rye.",
    "react": REACT + "\n\nQuestion: bake a rye",
}


@pytest.mark.parametrize("text", USER.values(), ids=USER.keys())
def test_definitions_that_a_user_turn_offers_are_found(text: str) -> None:
    assert tool_text.detect([{"role": "user", "content": text}]) is not None


NO_TOOLS = {
    "a noun": ("system", "You are a helpful tool that answers questions about bread."),
    "a tag in prose": ("system", "Wrap the list of utensils in <tools> and </tools>."),
    "an empty tag": ("system", "<tools></tools>\nNo tools today."),
    "an empty list": ("system", "<tools>[]</tools>"),
    "an output schema": ("system", f"Reply with JSON that matches <schema>{json.dumps(SCHEMA)}</schema>"),
    "a persona": ("system", '{"name": "Ida", "description": "baker", "hobbies": ["chess"]}'),
    "a call's format": ("system", 'Calls look like {"name": "f", "arguments": {"a": 1}}.'),
    "a call's format, llama": (
        "system",
        'Respond as {"name": function name, "parameters": dictionary of names and values}.',
    ),
    "a screenplay": ("system", "Write as a screenplay. Action: ... Dialogue: ..."),
    "a python question": ("user", "What does this print?\ndef bake(loaf):\n    return loaf\n"),
    "functions given to explain": (
        "user",
        "Given the following functions, explain them:\ndef bake(loaf: str) -> bool:\n    pass",
    ),
    "functions to use in a program": (
        "user",
        "You can use the following functions:\ndef bake(loaf: str) -> bool:\n    pass\nWrite main().",
    ),
    "a definition to explain": ("user", f"Explain this OpenAI tool definition to me:\n{OPENAI}"),
    "a definition to mend": ("user", f"I have the following functions, why a 400? {OPENAI}"),
    "an api to convert": (
        "user",
        'To curl: {"paths": {"/loaf": {"get": {"parameters": [{"name": "h", "in": "query"}]}}}}',
    ),
    "available tools": ("user", "What are the available tools for kneading dough?"),
    "a namespace": ("user", "Why does namespace functions { type Loaf = string } fail?"),
    "yaml of a cluster": ("user", "containers:\n- name: web\n  image: nginx\n  description: x"),
    "ipython": ("user", "Environment: ipython\nTools: brave_search\nwhat is this?"),
}  # fmt: skip


@pytest.mark.parametrize(("role", "text"), NO_TOOLS.values(), ids=NO_TOOLS.keys())
def test_talking_about_tools_is_no_definition(role: str, text: str) -> None:
    assert tool_text.detect([{"role": role, "content": text}]) is None


def test_an_offer_in_one_turn_does_not_make_a_definition_of_another() -> None:
    texts = ("You have access to the following tools: spoon, fork.", f"Explain this: {OPENAI}")
    assert tool_text.detect([{"role": "user", "content": text} for text in texts]) is None


RUNS = [
    "<tools>{",
    '"name": "a',
    "{",
    "def f(",
    "- name: a\n",
    "# Tools\n",
    "\\",
    "\n",
    " ",
    "-\n",
    "use ",
]


@pytest.mark.parametrize("piece", RUNS)
def test_a_long_run_of_one_thing_does_not_take_long(piece: str) -> None:
    """Half a million characters in seconds; a pattern that tries each run twice takes hours."""
    words = "parameters: Action Input namespace name: def ( Environment: ipython\n# Tools\nTools:\n"
    text = f'<tools>{words}"parameters"{piece * (500_000 // len(piece))}'
    start_s = time.process_time()
    tool_text.detect([{"role": "system", "content": text}])
    assert time.process_time() - start_s < 20
