"""Every case and the tests that hold it: files under ``data/``, and kinds that need no file.

A test is named ``path::function`` below ``tests/``, where the path is a file or a folder. Rows name what the
whole product must keep first, then, where there is one, the test of the layer that does it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
        files: paths under ``data/``; none for a kind without files.
        outcome: what is right.
        tests: where it is checked.
    """

    files: tuple[str, ...]
    outcome: str
    tests: tuple[str, ...]


def _named(folder: str, names: str, suffix: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}.{suffix}" for name in names.split())


PARSE, FILTER, DEDUP = "cases/test_parse_files.py", "cases/test_filter_files.py", "cases/test_dedup_files.py"
DIALOGUE, LETTERS, NOTHING = "cases/test_dialogue_files.py", "cases/test_letters.py", "cases/test_nothing.py"
LARGE, LOSS, JOB = "cases/test_large.py", "cases/test_source_loss.py", "cases/test_job_file.py"
LAYER = {name: f"layers/{name}/test_cases.py" for name in ("parse", "filter", "dedup")}

FILE_CASES = (
    Case(
        _named("jsonl", "plain bom crlf no_final_newline", "jsonl"),
        "the same three texts in all four",
        (
            f"{PARSE}::test_four_ways_to_write_three_rows",
            f"{LAYER['parse']}::test_jsonl_forms_give_the_same_texts",
        ),
    ),
    Case(
        ("jsonl/line_separators.jsonl",),
        "three documents; lines end at LF only",
        (
            f"{PARSE}::test_only_line_feeds_split_lines",
            f"{LAYER['parse']}::test_line_separators_split_nothing",
        ),
    ),
    Case(
        _named("jsonl", "bad_byte_in_middle broken_line", "jsonl"),
        "the bad line isolated, all others present",
        (
            f"{PARSE}::test_one_bad_line_is_isolated",
            f"{LETTERS}::test_every_isolated_record_is_listed_with_its_place",
            f"{LETTERS}::test_retried_letters_are_tried_again",
            f"{LAYER['parse']}::test_a_bad_line_is_isolated",
        ),
    ),
    Case(
        ("jsonl/lone_surrogate.jsonl",),
        "four documents, one marked repaired",
        (f"{PARSE}::test_lone_surrogate_is_mended", f"{LAYER['parse']}::test_lone_surrogate"),
    ),
    Case(
        ("jsonl/nul.jsonl",),
        "four documents, NUL removed, no batch aborted",
        (f"{PARSE}::test_nul_is_removed_and_no_batch_aborted", f"{LAYER['parse']}::test_nul"),
    ),
    Case(
        ("jsonl/nan.jsonl",),
        "four documents, NaN made null, counted",
        (f"{PARSE}::test_nan_becomes_null_and_is_marked", f"{LAYER['parse']}::test_nan"),
    ),
    Case(
        ("jsonl/null_then_string.jsonl",),
        "one schema; the late column survives",
        (f"{PARSE}::test_late_column_survives", f"{LAYER['parse']}::test_null_then_string_is_one_schema"),
    ),
    Case(
        ("jsonl/missing_text.jsonl",),
        "four odd rows, each with its reason",
        (f"{PARSE}::test_rows_without_text_are_told_apart", f"{LAYER['parse']}::test_missing_text"),
    ),
    Case(
        ("jsonl/duplicate_ids.jsonl",),
        "two documents, neither overwrites the other",
        (f"{PARSE}::test_equal_user_ids_are_two_documents", f"{LAYER['parse']}::test_duplicate_ids"),
    ),
    Case(
        ("jsonl/multi_member.jsonl.gz",),
        "all three rows",
        (f"{PARSE}::test_every_member_of_a_gzip_file_is_read", f"{LAYER['parse']}::test_multi_member_gzip"),
    ),
    Case(
        ("jsonl/truncated.jsonl.gz",),
        "a file-level dead letter with its offset, whole rows kept, exit code 4",
        (
            f"{PARSE}::test_cut_gzip_file_keeps_its_whole_rows",
            f"{LETTERS}::test_a_cut_file_alone_is_no_short_success",
            f"{LETTERS}::test_the_report_shows_them",
            f"{LAYER['parse']}::test_truncated_gzip_keeps_whole_rows_and_other_files",
        ),
    ),
    Case(
        ("jsonl/empty.jsonl", "jsonl/empty.jsonl.gz"),
        "a successful run of zero documents",
        (
            f"{NOTHING}::test_no_documents_give_an_empty_version",
            f"{NOTHING}::test_a_day_that_is_empty_after_one_that_was_not",
            f"{PARSE}::test_empty_file_among_others",
            "airflow::test_an_empty_source_is_a_successful_run",
            f"{LAYER['parse']}::test_empty_files_are_no_error",
        ),
    ),
    Case(
        _named("html", "plain unclosed cut_in_tag", "html"),
        "body without menu; the latter two marked repaired",
        (f"{PARSE}::test_page_without_its_menu", f"{LAYER['parse']}::test_html_body_without_menu"),
    ),
    Case(
        ("html/deep.html",),
        "text or isolated, in time, no dead worker",
        (f"{PARSE}::test_sixty_thousand_levels", f"{LAYER['parse']}::test_html_deep_gives_text"),
    ),
    Case(
        ("html/script_only.html",),
        "rejected as empty text",
        (f"{PARSE}::test_page_of_script_alone", f"{LAYER['parse']}::test_html_script_only_is_empty"),
    ),
    Case(
        _named("html", "error_page captcha advert good_with_marker_line", "html"),
        "each rejected under its own marker rule; the good page kept",
        (f"{PARSE}::test_marker_rules", f"{LAYER['filter']}::test_marked_pages"),
    ),
    Case(
        ("html/zh_gbk.html",),
        "correct Chinese",
        (f"{PARSE}::test_chinese_page_in_gbk", f"{LAYER['parse']}::test_html_gbk"),
    ),
    Case(
        ("warc/three_records.warc",),
        "three documents with their URIs",
        (f"{PARSE}::test_warc_records", f"{LAYER['parse']}::test_warc_three_records"),
    ),
    Case(
        ("warc/bad_length_in_middle.warc",),
        "record 1 isolated, 0 and 2 come through",
        (
            f"{PARSE}::test_warc_goes_on_after_a_wrong_length",
            f"{LAYER['parse']}::test_warc_bad_length_in_the_middle",
        ),
    ),
    Case(
        ("md/open_fence.md",),
        "fence closed, marked repaired, code intact",
        (f"{PARSE}::test_open_fence_is_closed", f"{LAYER['parse']}::test_markdown_open_fence"),
    ),
    Case(
        ("md/front_matter.md",),
        "front matter is metadata",
        (f"{PARSE}::test_front_matter_is_metadata", f"{LAYER['parse']}::test_markdown_front_matter"),
    ),
    Case(
        ("code/short_ok.py",),
        "kept: prose rules do not apply to code",
        (f"{PARSE}::test_short_code_is_kept", f"{LAYER['filter']}::test_short_code_is_kept"),
    ),
    Case(
        _named("text", "loop loop_zh", "txt"),
        "rejected by the zlib ratio; both exceed the top 3-gram coverage too",
        (
            f"{FILTER}::test_rule",
            f"{FILTER}::test_the_next_rule_finds_it_too",
            f"{LAYER['filter']}::test_loops_exceed_the_top_ngram_too",
        ),
    ),
    Case(
        ("text/control.txt",),
        "rejected by the control-character ratio, before they are stripped",
        (
            f"{FILTER}::test_control_characters_are_judged_before_they_go",
            f"{LAYER['parse']}::test_control_characters_are_counted_before_they_go",
        ),
    ),
    Case(
        ("text/punct.txt",),
        "rejected by the meaningful-character ratio",
        (f"{FILTER}::test_rule", f"{LAYER['filter']}::test_text"),
    ),
    Case(
        ("text/seo.txt",),
        "rejected by the zlib ratio; without it by the stop-word test",
        (
            f"{FILTER}::test_rule",
            f"{FILTER}::test_the_next_rule_finds_it_too",
            f"{LAYER['filter']}::test_stuffing_is_found_without_the_compression_ratio",
        ),
    ),
    Case(
        ("text/short.txt",),
        "rejected by length",
        (f"{FILTER}::test_rule", f"{LAYER['filter']}::test_text"),
    ),
    Case(
        _named("text", "zh_prose_ok en_prose_ok", "txt"),
        "kept by every default rule",
        (f"{FILTER}::test_rule", f"{LAYER['filter']}::test_text"),
    ),
    Case(
        ("norm/fullwidth_pair.jsonl",),
        "exact duplicates; stored texts untouched",
        (
            f"{DEDUP}::test_full_width_copies_are_exact_duplicates",
            f"{LAYER['dedup']}::test_fullwidth_pair_is_exact_and_the_shorter_stored_text_stays",
        ),
    ),
    Case(
        ("norm/superscript.jsonl",),
        "no NFKC on stored text",
        (
            f"{PARSE}::test_stored_text_is_not_folded",
            f"{DEDUP}::test_superscripts_are_exported_as_they_are",
            f"{LAYER['parse']}::test_superscripts_stay",
        ),
    ),
    Case(
        ("dedup/pairs.jsonl",),
        "a-long alone of its group; different short texts never match",
        (
            f"{DEDUP}::test_the_longest_of_a_group_survives_alone",
            f"{DEDUP}::test_lineage_names_the_survivor_and_its_own_fate",
            f"{LAYER['dedup']}::test_pairs",
        ),
    ),
    Case(
        ("dedup/chain.jsonl",),
        "every removed document has a survivor it was verified against; the ends stay apart",
        (
            f"{DEDUP}::test_every_link_of_a_chain_was_verified_against_its_survivor",
            f"{LAYER['dedup']}::test_chain_never_swallows_its_unlike_ends",
        ),
    ),
    Case(
        ("dedup/template.jsonl",),
        "all forty survive",
        (
            f"{DEDUP}::test_a_shared_template_removes_nobody",
            f"{LAYER['dedup']}::test_template_pages_all_survive",
        ),
    ),
    Case(
        ("dialogue/messages.jsonl",),
        "all turns kept in order",
        (
            f"{DIALOGUE}::test_all_turns_in_order",
            f"{DIALOGUE}::test_dialogues_reach_the_shards_whole",
            f"{LAYER['parse']}::test_dialogue_messages",
        ),
    ),
    Case(
        ("dialogue/sharegpt.jsonl",),
        "the same rows as messages would give",
        (
            f"{DIALOGUE}::test_sharegpt_becomes_the_same_rows",
            f"{LAYER['parse']}::test_sharegpt_becomes_the_same_rows",
        ),
    ),
    Case(
        ("dialogue/special_tokens.jsonl",),
        "ordinary text: no tokenizer emits a special id",
        (
            f"{DIALOGUE}::test_special_strings_count_as_the_text_they_are",
            f"{LAYER['parse']}::test_special_tokens_are_ordinary_text",
        ),
    ),
)

KIND_CASES = (
    Case(
        (),
        "any workers, order, sizes, hash seed, kill and resume: the same bytes",
        (
            "pipeline::test_same_bytes",
            "pipeline::test_files_written_in_another_order_with_other_times",
            "pipeline::test_killed_at_every_point_in_turn",
        ),
    ),
    Case(
        (),
        "two attempts at once: one artifact, the loser gets LeaseLost",
        (
            "cases/test_attempts.py::test_the_slower_attempt_loses",
            "cases/test_attempts.py::test_a_late_attempt_commits_nothing_while_another_is_at_work",
            "pipeline::test_a_double_trigger_is_one_version",
            "state::test_exactly_one_process_commits",
        ),
    ),
    Case(
        (),
        "a changed threshold, rule version or model: exactly the steps after it run again",
        (
            "cases/test_reruns.py::test_a_threshold_that_refuses_a_document",
            "cases/test_reruns.py::test_a_threshold_that_changes_no_verdict",
            "cases/test_reruns.py::test_a_threshold_of_dedup",
            "cases/test_reruns.py::test_a_rule_version",
            "cases/test_reruns.py::test_a_model",
        ),
    ),
    Case(
        (),
        "a primary key twice in a batch collapses, counted; a payload without its key is refused",
        (
            "state::test_doubles_collapse_to_the_last_and_are_counted",
            "state::test_a_payload_without_its_key_is_refused_before_any_sql",
        ),
    ),
    Case(
        (),
        "a worker that reads and writes one table ends",
        ("state::test_a_worker_that_reads_and_writes_one_table_ends",),
    ),
    Case(
        (),
        "a resume in the middle of file 2 of 5 reads files 3 to 5 from their first row",
        (
            "cases/test_resume.py::test_files_after_the_resumed_one_start_at_their_first_row",
            "state::test_after_the_resumed_file_reading_starts_at_the_first_row",
        ),
    ),
    Case(
        (),
        "signatures of another making are refused with both fingerprints",
        ("layers/dedup::test_signatures_of_other_making_are_refused",),
    ),
    Case(
        (),
        "a document of 100 million characters: signature in blocks, as at once",
        (
            f"{LARGE}::test_a_document_of_a_hundred_million_characters",
            "kernels::test_pieces_equal_one_pass",
        ),
    ),
    Case(
        (),
        "a string column above 2 GiB in one chunk",
        (f"{LARGE}::test_a_text_column_above_two_gibibytes_in_one_chunk",),
    ),
    Case(
        (),
        "a source that loses more than 95 %: an alarm with source, step and top rule",
        (f"{LOSS}::test_the_alarm_names_source_step_and_rule", f"{LOSS}::test_the_page_shows_it"),
    ),
    Case(
        (),
        "a pair of 500,000 characters is verified in 20 ms",
        (
            "kernels::test_half_a_million_characters_in_twenty_milliseconds",
            f"{LARGE}::test_a_pair_of_half_a_million_characters",
        ),
    ),
    Case(
        (),
        "the job file that users write loads unchanged and runs with a source",
        (
            f"{JOB}::test_it_loads_unchanged",
            f"{JOB}::test_without_sources_it_says_how_to_add_them",
            f"{JOB}::test_with_a_source_it_runs",
        ),
    ),
)
