"""The queue protocol: one Lua script per transition of a prompt, beside its typed caller."""
