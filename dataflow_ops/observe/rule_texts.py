"""What each rule measures, in a line for a reader of the report, and where its bounds are set."""

from __future__ import annotations

RULE_TEXTS: dict[str, tuple[str, str]] = {
    # parse, label
    "empty_text": ("the parser found no text in the record", "解析器在记录中未找到正文"),
    "too_long": ("longer than the job takes whole", "超过作业允许的长度"),
    "language": ("not in one of the languages kept", "不属于要保留的语言"),
    "language_score": ("its language is too uncertain", "语言判定把握不足"),
    # characters
    "length": ("characters of the text", "正文字符数"),
    "control_ratio": ("share of control characters", "控制字符占比"),
    "replacement_ratio": (
        "share of U+FFFD, which a wrong decoder leaves behind",
        "U+FFFD（错误解码的残留）占比",
    ),
    "meaningful_ratio": (
        "share of letters and digits among visible characters",
        "可见字符中字母与数字的占比",
    ),
    "han_share": ("share of Han among the letters of a Chinese text", "中文文本的字母中汉字占比"),
    "digit_share": ("share of digits", "数字占比"),
    "latin_share": ("share of Latin letters", "拉丁字母占比"),
    "han_ratio": ("share of Han characters", "汉字占比"),
    # phrases
    "captcha": ("share of text in sentences of a challenge page", "人机验证页语句占比"),
    "error_page": ("share of text in sentences of an error page", "错误页语句占比"),
    "advertising": ("share of text in sentences that advertise", "广告语句占比"),
    "bad_word_ratio": ("share of characters in words of the list", "词表中不良词的字符占比"),
    # compression and repetition
    "zlib_ratio": (
        "compressed ÷ plain size: low means the text repeats itself",
        "压缩后与原文大小之比：低表示内容重复",
    ),
    "zlib_window": ("the same for its most repetitive stretch of 2 KB", "最重复的 2 KB 片段的压缩比"),
    "entropy": ("bits per character: low means few different ones", "每字符熵（比特）：低表示字符单一"),
    "stop_words": (
        "share of the most frequent content words: stuffed keywords",
        "最高频实词占比：关键词堆砌",
    ),
    "top_ngram_coverage": ("share taken by the most frequent three words", "最高频三词组的占比"),
    "loop_share": ("share of bytes in stretches that go round in a loop", "循环重复片段的字节占比"),
    "repetition_ratio": ("share of characters in five words that stood before", "重复出现的五词组的字符占比"),
    # wording
    "avg_sentence_len": ("characters per sentence", "平均每句字符数"),
    "function_word_share": ("share of function words", "虚词占比"),
    "function_word_spread": ("how many different function words occur", "不同虚词的有效数量"),
    "word_count": ("words; Han and kana characters count one each", "词数（汉字与假名各计一）"),
    # Gopher
    "gopher_word_count": ("words", "词数"),
    "gopher_word_length": ("characters per word", "平均词长"),
    "gopher_symbols": ("hash signs or ellipses per word", "每词的井号或省略号数"),
    "gopher_bullets": ("share of lines that begin with a bullet", "以项目符号开头的行占比"),
    "gopher_ellipses": ("share of lines that end in an ellipsis", "以省略号结尾的行占比"),
    "gopher_alphabetic": ("share of words that hold a letter", "含字母的词占比"),
    "gopher_stop_words": ("how many of eight common English words occur", "八个常用英文词出现的个数"),
    "gopher_lines": ("share of lines equal to an earlier one", "与前文相同的行占比"),
    "gopher_paragraphs": ("share of paragraphs equal to an earlier one", "与前文相同的段落占比"),
    "gopher_line_chars": ("share of characters in repeated lines", "重复行的字符占比"),
    "gopher_paragraph_chars": ("share of bytes in repeated paragraphs", "重复段落的字节占比"),
    "gopher_top_2gram": ("share taken by the most frequent two words", "最高频二词组的占比"),
    "gopher_top_3gram": ("share taken by the most frequent three words", "最高频三词组的占比"),
    "gopher_top_4gram": ("share taken by the most frequent four words", "最高频四词组的占比"),
    "gopher_5grams": ("share of characters in repeated runs of 5 words", "重复 5 词组的字符占比"),
    "gopher_6grams": ("share of characters in repeated runs of 6 words", "重复 6 词组的字符占比"),
    "gopher_7grams": ("share of characters in repeated runs of 7 words", "重复 7 词组的字符占比"),
    "gopher_8grams": ("share of characters in repeated runs of 8 words", "重复 8 词组的字符占比"),
    "gopher_9grams": ("share of characters in repeated runs of 9 words", "重复 9 词组的字符占比"),
    "gopher_10grams": ("share of characters in repeated runs of 10 words", "重复 10 词组的字符占比"),
    # C4
    "c4_sentences": ("sentences with a word in them", "含词的句子数"),
    "c4_curly_brackets": ("lines with a curly bracket", "含花括号的行数"),
    "c4_lorem_ipsum": ('occurrences of "lorem ipsum"', "“lorem ipsum”出现次数"),
    "c4_bad_words": ("share of characters in words of the list", "词表中不良词的字符占比"),
    # FineWeb
    "fineweb_ended_lines": ("share of lines that end like a sentence", "以句末标点结尾的行占比"),
    "fineweb_short_lines": ("share of lines under 30 characters", "不足 30 字符的行占比"),
    "fineweb_line_chars": ("share of characters in repeated lines", "重复行的字符占比"),
}
"""Rule -> what its value is (English, Chinese)."""

OTHER_SETTINGS: dict[str, str] = {
    "too_long": "clean.on_too_long",
    "language": "clean.language.keep",
    "language_score": "clean.language.min_score",
}
"""Settings of what removes documents besides the filter's rules."""


def settings_of(step: str, rule: str) -> str:
    """Key of the job file under which a rule's bounds stand (``….low``, ``….high``); else ``""``."""
    return f"clean.quality_rules.rules.{rule}" if step == "filter" else OTHER_SETTINGS.get(rule, "")
