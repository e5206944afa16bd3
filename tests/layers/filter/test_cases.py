from pathlib import Path

import pytest
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from tests.layers.filter.documents import rules_of, step

DATA = Path(__file__).parents[2] / "cases" / "data"


def text(name):
    return (DATA / name).read_text(encoding="utf-8")


def page(name):
    tree = HTMLTree.parse_from_bytes((DATA / name).read_bytes(), "utf-8")
    return extract_plain_text(tree, preserve_formatting=True, main_content=True)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("text/loop.txt", "zlib_ratio"),
        ("text/loop_zh.txt", "zlib_ratio"),
        ("text/control.txt", "control_ratio"),
        ("text/punct.txt", "meaningful_ratio"),
        ("text/seo.txt", "zlib_ratio"),
        ("text/short.txt", "length"),
        ("text/zh_prose_ok.txt", ""),
        ("text/en_prose_ok.txt", ""),
    ],
)
def test_text(name, rule):
    assert rules_of([text(name)]) == [rule]


@pytest.mark.parametrize("name", ["text/loop.txt", "text/loop_zh.txt"])
def test_loops_exceed_the_top_ngram_too(name):
    assert rules_of([text(name)], using=step(disable=["zlib_ratio", "stop_words"])) == ["top_ngram_coverage"]


def test_stuffing_is_found_without_the_compression_ratio():
    assert rules_of([text("text/seo.txt")], using=step(disable=["zlib_ratio"])) == ["stop_words"]


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("html/error_page.html", "error_page"),
        ("html/captcha.html", "captcha"),
        ("html/advert.html", "advertising"),
        ("html/good_with_marker_line.html", ""),
    ],
)
def test_marked_pages(name, rule):
    assert rules_of([page(name)]) == [rule]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (
            "很抱歉，您访问的页面不存在。请检查网址是否正确，您要查看的页面可能已被移动，点击这里返回首页。",
            "error_page",
        ),
        (
            "请完成下方的安全验证后继续访问，拖动滑块完成拼图。我们需要确认您不是机器人，请输入验证码。",
            "captcha",
        ),
        (
            "限时优惠，全场包邮，立即购买享受五折！想了解更多请加微信，或者拨打咨询热线，扫码关注我们。",
            "advertising",
        ),
    ],
)
def test_marked_pages_in_chinese(line, rule):
    prose = text("text/zh_prose_ok.txt")
    page_only, in_prose = line + "第" + "一二三四五六七八九十" * 2 + "页。" + line * 2, prose + line
    assert rules_of([page_only, in_prose]) == [rule, ""]


def test_a_page_about_captchas_is_kept():
    about = (
        "A captcha is a test that tells people and programs apart. The first captcha showed bent letters, and"
        " a later captcha asked for street numbers that no scanner could read. Every captcha costs its reader"
        " some seconds. Many sites say that you are not a robot only after such a test."
    )
    assert rules_of([about]) == [""]


def test_short_code_is_kept():
    code = text("code/short_ok.py")
    assert rules_of([code], ["code"]) == [""]
    assert rules_of([code], ["code"], step(rules={"length": {"low": 1000}})) == [""]
    assert rules_of([code], using=step(rules={"length": {"low": 1000}})) == [""]
    assert rules_of([text("text/en_prose_ok.txt")[:900]], using=step(rules={"length": {"low": 1000}})) == [
        "length"
    ]


def test_the_job_file_that_users_write_keeps_good_text():
    from dataflow_ops.job_file import load_job
    from dataflow_ops.layers.filter.step import FilterStep

    job = FilterStep(load_job(DATA.parent / "config" / "web_corpus_v3.yaml"))
    names = [text("text/en_prose_ok.txt"), text("text/zh_prose_ok.txt"), text("text/short.txt")]
    assert rules_of(names, using=job) == ["", "", "length"]
    bounds = {rule.name: (rule.low, rule.high) for rule in job.rules}
    assert bounds["length"] == (200, 50_000)
    assert bounds["repetition_ratio"] == (None, 0.25)
    assert bounds["avg_sentence_len"] == (15, 200)
    assert bounds["bad_word_ratio"] == (None, 0.01)
