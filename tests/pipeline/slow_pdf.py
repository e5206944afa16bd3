"""PDFs that are small, give a few lines of text, and take as long to read as a test wants."""

from __future__ import annotations


def slow_pdf(pages: int, text: str = "A page that takes its time") -> bytes:
    """A valid PDF whose pages all draw the same costly picture and say the same line.

    Args:
        pages: each costs about 10 ms of CPU time on a machine of 2026.
        text: ASCII, without brackets.
    """
    lines = b"".join(
        b"%d %d m %d %d l\n" % (i % 595, i % 842, (i * 7) % 595, (i * 3) % 842) for i in range(20_000)
    )
    content = b"BT /F1 12 Tf 50 700 Td (" + text.encode("ascii") + b") Tj ET\n" + lines + b"S\n"
    kids = b" ".join(b"%d 0 R" % (5 + i) for i in range(pages))
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents 4 0 R>>"
    bodies = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[" + kids + b"]/Count %d>>" % pages,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Length %d>>stream\n" % len(content) + content + b"\nendstream",
        *[page] * pages,
    ]
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(bodies, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(bodies) + 1, table)
    return bytes(out)
