"""A small run and a checker of pages, for the tests of the report."""

from __future__ import annotations

from html.parser import HTMLParser

from dataflow_ops.job_file import parse_job

HOSTILE = "<script>alert(1)</script>\"'&\x1b[31m{{x}}\ud800\u202e</style></title>"
VOID = {"meta", "br", "hr", "img", "input", "link"}

STEPS = [
    {"step": "parse", "documents_in": 24, "kept": 20, "rejected": 2, "dead": 2, "documents_out": 20,
     "bytes_in": 9000, "seconds_tasks": 2.0, "seconds_cpu": 3.5, "tasks": 2},
    {"step": "filter", "documents_in": 20, "kept": 17, "rejected": 3, "documents_out": 20, "tasks": 2},
    {"step": "sign", "documents_in": 20, "kept": 17, "skipped": {"rejected_before": 3}},
    {"step": "confirm", "documents_in": 4, "kept": 2, "rejected": 2,
     "rule_hits": {"exact_duplicate": 1, "near_duplicate": 1}},
    {"step": "label", "documents_in": 15, "kept": 14, "rejected": 1},
    {"step": "scatter", "documents_in": 22, "kept": 13},
    {"step": "export", "documents_in": 13, "kept": 13, "documents_out": 13},
]  # fmt: skip
DEAD = [{"step": "parse", "error": "ParserFailed", "parser": "pdf", "media_type": "application/pdf",
         "host": HOSTILE, "count": 2, "example": HOSTILE}]  # fmt: skip


class Page(HTMLParser):
    """Checks that tags nest, collects ids and attributes."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for key, value in attrs:
            self.attributes.append((tag, key, value or ""))
            if key == "id":
                self.ids.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parse_page(page: str) -> Page:
    found = Page()
    found.feed(page)
    found.close()
    assert found.open == []
    assert len(found.ids) == len(set(found.ids))
    return found


def job(**extra):
    return parse_job({"dataset": {"id": "web"}, **extra})
