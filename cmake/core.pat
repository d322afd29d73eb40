# What stubgen leaves out of the stub of lacuna._core.
_core.__suffix__:
    __version__: str
