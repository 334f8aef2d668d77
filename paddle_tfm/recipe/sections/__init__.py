"""What a recipe says in a section of its own, a module a section: its form, and what is wrong with one."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo


class Section(BaseModel):
    """A section of a recipe: each key is known, each value of its type as written."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    where_a_key_is_missing: ClassVar[str] = "start with `base: base.yaml`, which holds every default"


def keys(section: Any) -> dict[str, FieldInfo]:
    """What a section may hold, as it is written: `from`, which is no name in Python. Of anything else nothing."""
    return {field.alias or name: field for name, field in getattr(section, "model_fields", {}).items()}
