"""No case without a test, no file without a case."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.cases.product import CASES
from tests.cases.rows import FILE_CASES, KIND_CASES, Case

TESTS = Path(__file__).parents[1]


@cache
def functions(path: str) -> set[str]:
    """Names of the test functions of a file, or of all files of a folder; methods of classes too."""
    place = TESTS / path
    return {
        node.name
        for file in ([place] if place.is_file() else sorted(place.glob("*.py")))
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("case", [*FILE_CASES, *KIND_CASES], ids=lambda case: case.outcome)
def test_every_case_has_tests(case: Case) -> None:
    assert case.tests
    for name in case.tests:
        path, _, function = name.partition("::")
        assert function in functions(path), f"{name} is gone"


@pytest.mark.parametrize("case", FILE_CASES, ids=lambda case: case.outcome)
def test_the_files_of_a_case_are_read_by_its_tests(case: Case) -> None:
    for file in case.files:
        assert (CASES / file).is_file()
        stem = Path(file).name.partition(".")[0]
        modules = {path for name in case.tests if (path := name.partition("::")[0]).endswith(".py")}
        assert any(stem in (TESTS / module).read_text("utf-8") for module in modules), file


def test_every_file_has_a_case() -> None:
    there = sorted(str(path.relative_to(CASES)) for path in CASES.rglob("*") if path.is_file())
    assert sorted(file for case in FILE_CASES for file in case.files) == there
