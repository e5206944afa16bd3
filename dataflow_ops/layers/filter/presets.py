"""Published rule sets, added to the default one by ``quality_rules.presets``; they judge prose only.

Rules of those papers that cut lines out of a page (C4's lines without a full stop or with "javascript")
are left out: filters here keep or refuse documents and never alter text.
"""

from __future__ import annotations

from dataflow_ops.layers.filter.rule import PROSE, Rule
from dataflow_ops.layers.filter.rules import marking, repetition, wording

_GOPHER = "Rae et al. 2021 (Gopher, arXiv:2112.11446), appendix A.1.1"
_TABLE = "Rae et al. 2021 (Gopher, arXiv:2112.11446), table A1"
_C4 = "Raffel et al. 2020 (T5, JMLR 21:140), section 2.2"
_FINEWEB = "Penedo et al. 2024 (FineWeb, arXiv:2406.17557), custom heuristic filters"
_ENGLISH = "meant for English web pages: lists, verse and other languages go"
_UNITS = "shares count units, not characters; manuals with set phrases go"

PRESETS: dict[str, tuple[Rule, ...]] = {
    "gopher": (
        Rule("gopher_word_count", 1, wording.words, 50, 100_000, "L2", PROSE, _GOPHER, _ENGLISH),
        Rule(
            "gopher_word_length",
            1,
            wording.mean_word_length,
            3,
            10,
            "L2",
            PROSE,
            _GOPHER,
            "Chinese goes whole",
            alias="rps_doc_mean_word_length",
        ),
        Rule(
            "gopher_symbols",
            1,
            wording.symbols_per_word,
            None,
            0.1,
            "L2",
            PROSE,
            _GOPHER,
            "tag clouds, chats",
            alias="rps_doc_symbol_to_word_ratio",
        ),
        Rule("gopher_bullets", 1, wording.bullet_lines, None, 0.9, "L2", PROSE, _GOPHER, "lists"),
        Rule(
            "gopher_ellipses",
            1,
            wording.ellipsis_lines,
            None,
            0.3,
            "L2",
            PROSE,
            _GOPHER,
            "pages of excerpts",
            alias="rps_doc_frac_lines_end_with_ellipsis",
        ),
        Rule(
            "gopher_alphabetic", 1, wording.alphabetic_words, 0.8, None, "L2", PROSE, _GOPHER, "price lists"
        ),
        Rule(
            "gopher_stop_words",
            1,
            wording.gopher_stop_words_present,
            2,
            None,
            "L2",
            PROSE,
            _GOPHER,
            "every language but English goes",
        ),
        Rule("gopher_lines", 1, repetition.repeated_lines, None, 0.30, "L2", PROSE, _TABLE, _UNITS),
        Rule("gopher_paragraphs", 1, repetition.repeated_paragraphs, None, 0.30, "L2", PROSE, _TABLE, _UNITS),
        Rule("gopher_line_chars", 1, repetition.repeated_line_chars, None, 0.20, "L2", PROSE, _TABLE, _UNITS),
        Rule(
            "gopher_paragraph_chars",
            1,
            repetition.repeated_paragraph_bytes,
            None,
            0.20,
            "L2",
            PROSE,
            _TABLE,
            _UNITS,
        ),
        Rule(
            "gopher_top_2gram",
            1,
            repetition.top_2gram,
            None,
            0.20,
            "L2",
            PROSE,
            _TABLE,
            _UNITS,
            alias="rps_doc_frac_chars_top_2gram",
        ),
        Rule("gopher_top_3gram", 1, repetition.top_3gram, None, 0.18, "L2", PROSE, _TABLE, _UNITS),
        Rule(
            "gopher_top_4gram",
            1,
            repetition.top_4gram,
            None,
            0.16,
            "L2",
            PROSE,
            _TABLE,
            _UNITS,
            alias="rps_doc_frac_chars_top_4gram",
        ),
        Rule("gopher_5grams", 1, repetition.repeated_5grams, None, 0.15, "L2", PROSE, _TABLE, _UNITS),
        Rule(
            "gopher_6grams",
            1,
            repetition.repeated_6grams,
            None,
            0.14,
            "L2",
            PROSE,
            _TABLE,
            _UNITS,
            alias="rps_doc_frac_chars_dupe_6grams",
        ),
        Rule(
            "gopher_7grams",
            1,
            repetition.repeated_7grams,
            None,
            0.13,
            "L2",
            PROSE,
            _TABLE,
            _UNITS,
            alias="rps_doc_frac_chars_dupe_7grams",
        ),
        Rule(
            "gopher_8grams",
            1,
            repetition.repeated_8grams,
            None,
            0.12,
            "L2",
            PROSE,
            _TABLE,
            _UNITS,
            alias="rps_doc_frac_chars_dupe_8grams",
        ),
        Rule(
            "gopher_9grams",
            1,
            repetition.repeated_9grams,
            None,
            0.11,
            "L2",
            PROSE,
            _TABLE,
            _UNITS,
            alias="rps_doc_frac_chars_dupe_9grams",
        ),
        Rule(
            "gopher_10grams",
            1,
            repetition.repeated_10grams,
            None,
            0.10,
            "L2",
            PROSE,
            _TABLE,
            _UNITS,
            alias="rps_doc_frac_chars_dupe_10grams",
        ),
    ),
    "c4": (
        Rule(
            "c4_sentences", 1, wording.sentences, 3, None, "L2", PROSE, _C4, "captions, single long sentences"
        ),
        Rule(
            "c4_curly_brackets",
            1,
            wording.brace_lines,
            None,
            0,
            "L2",
            PROSE,
            _C4,
            "every text that quotes code",
            alias="rps_doc_curly_bracket",
        ),
        Rule(
            "c4_lorem_ipsum",
            1,
            wording.lorem_ipsum,
            None,
            0,
            "L2",
            PROSE,
            _C4,
            "pages about lorem ipsum",
            alias="rps_doc_lorem_ipsum",
        ),
        Rule(
            "c4_bad_words",
            1,
            marking.bad_word_share,
            None,
            0,
            "L2",
            PROSE,
            _C4,
            "one word condemns: sexual education, slang, reporting",
        ),
    ),
    "fineweb": (
        Rule(
            "fineweb_ended_lines", 1, wording.ended_lines, 0.12, None, "L2", PROSE, _FINEWEB, "lists, verse"
        ),
        Rule(
            "fineweb_short_lines",
            1,
            wording.short_lines,
            None,
            0.67,
            "L2",
            PROSE,
            _FINEWEB,
            "verse, dialogue",
        ),
        Rule(
            "fineweb_line_chars", 1, repetition.repeated_line_chars, None, 0.10, "L2", PROSE, _FINEWEB, _UNITS
        ),
    ),
}
"""Rule sets by the name they have in the job file."""
