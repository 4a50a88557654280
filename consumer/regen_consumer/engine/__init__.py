"""The engine client: from a ready prompt to a completion, or to a fault with its class.

Knows HTTP, SGLang and the OpenAI format; knows nothing of queues, slots and retries.
"""
