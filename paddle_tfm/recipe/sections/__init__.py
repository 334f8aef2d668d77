"""What a recipe says in a section of its own, a module a section: its form, and what is wrong with one."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A section of a recipe: each key is known, each value of its type as written."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    where_a_key_is_missing: ClassVar[str] = "start with `base: base.yaml`, which holds every default"
