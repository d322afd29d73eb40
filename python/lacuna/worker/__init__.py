"""The processes that measure, as Python sees them: how they are started, what they say, and what becomes of it.

Nothing that another process says is trusted: a line that does not come, or does not keep to the protocol, is an error
that says so, and no process stays behind.
"""
