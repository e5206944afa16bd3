from pathlib import Path

from dataflow_ops.layers.filter.page import rules_page
from dataflow_ops.layers.filter.selection import known_rules


def test_the_page_is_the_tables():
    page = Path(__file__).parents[3] / "docs" / "rules.md"
    assert page.read_text(encoding="utf-8") == rules_page()


def test_the_page_names_every_rule():
    page = rules_page()
    assert all(f"| `{name}`" in page for name in known_rules())
