from __future__ import annotations

import pytest

from dataflow_ops.samples.augment.refusals import is_refusal

REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "I’m sorry, but I cannot assist with this request.",
    "I am very sorry, I am unable to provide that information.",
    "Sorry, I can't do that.",
    "Unfortunately, I cannot fulfill this request.",
    "My apologies, but as an AI language model, I can't write that.",
    "As an AI language model, I do not have personal opinions.",
    "As an artificial intelligence, I must decline.",
    "I cannot assist with that.",
    "I can't comply with this.",
    '  \n"I\'m unable to help with that request."',
    "抱歉，我无法回答这个问题。",
    "很抱歉，我不能提供相关内容。",
    "對不起，我無法協助您。",
    "非常抱歉！作为一个语言模型，我不能这样做。",
    "作为一个人工智能语言模型，我没有个人观点。",
    "我是一个AI助手，无法访问互联网。",
    "我无法满足您的请求。",
]
ANSWERS = [
    "Sorry to hear that your order is late. Here is what you can do.",
    "I'm sorry for the delay. The parcel arrives on Monday.",
    "Unfortunately the bridge was closed in 1932, so traffic moved to the ferry.",
    "I can't believe how simple this is: add 2 and 2.",
    "As an aid to memory, write the formula on a card.",
    "You cannot help an editor who does not read.",
    "The function returns None. I cannot be negative here, because it counts items.",
    "Write to them: \"I'm sorry, but I can't help with that.\"",
    "抱歉让您久等了，您的快递明天送达。",
    "作为一个例子，我们来看二次方程，它没有实数解。",
    "人工智能无法取代教师的三个理由如下。",
    "我不能同意更多：这家餐厅非常好。",
    "对不起的英文是 sorry。",
    "",
]


@pytest.mark.parametrize("answer", REFUSALS)
def test_boilerplate_is_told(answer: str) -> None:
    assert is_refusal(answer)


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_is_none(answer: str) -> None:
    assert not is_refusal(answer)


def test_only_the_beginning_counts() -> None:
    assert not is_refusal("Here is the dialogue. " * 20 + "I'm sorry, but I can't help with that.")


def test_a_long_answer_takes_no_time() -> None:
    assert not is_refusal("sorry " * 200_000 + "i")
    assert not is_refusal(" " * 2_000_000)
