"""An imitation of SGLang 0.5.11 and 0.5.23, and of a plain OpenAI-compatible server, without a GPU.

``python -m regen_sim --port 0`` is the server, :class:`regen_sim.process.Sim` starts one from a
test, :func:`regen_sim.answers.expected` says what it will answer. See README.md beside this file.
"""
