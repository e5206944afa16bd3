"""What every section of a job file is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Base of all sections: frozen, unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)
