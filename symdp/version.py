"""The version of the package, alone in a file that anything may import."""

__version__ = "0.3.0"
