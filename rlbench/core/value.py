"""The base of every value that crosses a boundary: frozen, and strict about its keys."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """An immutable value. An unknown key is an error; NaN and Infinity are refused in JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def to_json(self) -> dict[str, Any]:
        """The value as plain JSON types."""
        return self.model_dump(mode="json")
