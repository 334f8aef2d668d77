"""Every variant that ships with paddle_tfm: `plugins/<kind>/<variant>.py`, one class a file.

Each kind's `__init__` registers its variants through the same hooks and entry points as anybody's plugin.
"""
