"""Names that the field uses for what our rules measure, so that readers find what they know."""

from __future__ import annotations

ALIASES: dict[str, tuple[str, ...]] = {
    "length": ("rps_doc_char_count", "C4 / FineWeb text length"),
    "meaningful_ratio": ("rps_doc_frac_no_alph_words (inverse)",),
    "bad_word_ratio": ("rps_doc_ldnoobw_words",),
    "stop_words": ("rps_doc_stop_word_fraction",),
    "entropy": ("rps_doc_unigram_entropy",),
    "top_ngram_coverage": ("rps_doc_frac_chars_top_3gram", "Gopher top_3_gram"),
    "repetition_ratio": ("rps_doc_frac_chars_dupe_5grams", "Gopher dup_5_gram"),
    "word_count": ("rps_doc_word_count", "Gopher word count"),
    "function_word_share": ("rps_doc_stop_word_fraction",),
    "gopher_word_count": ("rps_doc_word_count", "Gopher word count"),
    "gopher_word_length": ("rps_doc_mean_word_length", "Gopher mean word length"),
    "gopher_symbols": ("rps_doc_symbol_to_word_ratio", "Gopher symbol-to-word ratio"),
    "gopher_bullets": ("rps_lines_start_with_bulletpoint", "Gopher bullet lines"),
    "gopher_ellipses": ("rps_doc_frac_lines_end_with_ellipsis", "Gopher ellipsis lines"),
    "gopher_alphabetic": ("rps_doc_frac_no_alph_words (inverse)", "Gopher alphabetic words"),
    "gopher_top_2gram": ("rps_doc_frac_chars_top_2gram", "Gopher top_2_gram"),
    "gopher_top_3gram": ("rps_doc_frac_chars_top_3gram", "Gopher top_3_gram"),
    "gopher_top_4gram": ("rps_doc_frac_chars_top_4gram", "Gopher top_4_gram"),
    **{
        f"gopher_{n}grams": (f"rps_doc_frac_chars_dupe_{n}grams", f"Gopher dup_{n}_gram")
        for n in range(5, 11)
    },
    "c4_sentences": ("rps_doc_num_sentences",),
    "c4_curly_brackets": ("rps_doc_curly_bracket",),
    "c4_lorem_ipsum": ("rps_doc_lorem_ipsum",),
    "c4_bad_words": ("rps_doc_ldnoobw_words",),
    "fineweb_ended_lines": ("rps_lines_ending_with_terminal_punctution_mark", "FineWeb line punctuation"),
    "fineweb_short_lines": ("FineWeb short lines",),
    "fineweb_line_chars": ("FineWeb duplicate line characters",),
}
"""Rule -> names in RedPajama-V2 (``rps_…``, as spelled there), Gopher, C4 and FineWeb for the same or
nearly the same quantity. Units may differ; a name is a signpost, not an equation."""
