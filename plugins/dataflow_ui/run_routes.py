"""Routes of the run tab."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
