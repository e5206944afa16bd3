from __future__ import annotations

import pytest

from dataflow_ops.errors import UndecodableText
from dataflow_ops.layers.parse.encoding import decode, python_codec

# The detector's letter tables were corrected until it read these: they guard against falling back, and are
# no measure of how well it does on other text (docs/parsing.md has one).
SENTENCES = {
    "zh": "据气象台消息，受冷空气影响，明天夜间到后天白天我市将有小到中雨，最低气温降至五度。",
    "zht": "圖書館將於下週一起調整開放時間，讀者借閱的書籍可以在櫃檯辦理續借手續，逾期未還者需繳納罰款。",
    "ja": "明日の天気は全国的に晴れる見込みですが、北海道では午後から雪が降るところもあるでしょう。",
    "ko": "내일은 전국이 대체로 맑겠으나 제주도에는 오후부터 비가 오는 곳이 있겠습니다. 우산을 챙기세요.",
    "ru": "Завтра в столице ожидается переменная облачность без осадков.",
    "fr": "Le ciel sera nuageux à Genève ; les températures ne dépasseront pas cinq degrés l’après-midi.",
    "de": "Morgen wird es in München überwiegend bewölkt; die Höchstwerte liegen bei fünf Grad, bei Schnee.",
    "es": "Mañana habrá niebla en el valle del Ebro; las máximas no pasarán de diez grados según él.",
    "pl": "Już jutro będzie pochmurno, miejscami może spaść śnieg; wzrośnie w południe.",
    "el": "Αύριο ο καιρός θα είναι γενικά αίθριος με λίγες νεφώσεις στα βόρεια της χώρας.",
    "he": "מחר יהיה מזג האוויר נאה ברוב חלקי הארץ ובצפון ייתכן גשם קל.",
}

MATRIX = [
    ("zh", "gbk", "gb18030"),
    ("zh", "gb18030", "gb18030"),
    ("zht", "big5", "big5"),
    ("zht", "gbk", "gb18030"),
    ("ja", "shift_jis", "cp932"),
    ("ja", "euc_jp", "euc_jp"),
    ("ja", "iso2022_jp", "iso2022_jp"),
    ("ko", "euc_kr", "cp949"),
    ("ru", "cp1251", "cp1251"),
    ("ru", "koi8_r", "koi8_r"),
    ("fr", "cp1252", "cp1252"),
    ("de", "cp1252", "cp1252"),
    ("es", "latin-1", "cp1252"),
    ("pl", "cp1250", "cp1250"),
    ("el", "cp1253", "cp1253"),
    ("he", "cp1255", "cp1255"),
    ("zh", "utf-16-le", "utf-16-le"),
    ("zh", "utf-16-be", "utf-16-be"),
    ("de", "utf-16-le", "utf-16-le"),
    ("ru", "utf-16-be", "utf-16-be"),
    *((language, "utf-8", "utf-8") for language in SENTENCES),
]


@pytest.mark.parametrize(("language", "written", "read"), MATRIX)
@pytest.mark.parametrize("length", ["short", "whole", "long"])
def test_detected_without_any_declaration(language: str, written: str, read: str, length: str) -> None:
    text = SENTENCES[language]
    text = {"short": text[: len(text) // 2], "whole": text, "long": text * 100}[length]
    assert decode(text.encode(written)) == (text, read)


@pytest.mark.parametrize(("language", "written", "read"), MATRIX)
@pytest.mark.parametrize("wrong", ["utf-8", "iso-8859-1", "big5", "no-such-charset", "base64", "idna"])
def test_a_wrong_declaration_falls_through(language: str, written: str, read: str, wrong: str) -> None:
    text = SENTENCES[language]
    assert decode(text.encode(written), (wrong,))[0] == text


@pytest.mark.parametrize(("language", "written", "read"), MATRIX)
def test_the_right_declaration_is_taken(language: str, written: str, read: str) -> None:
    text = SENTENCES[language][:12]
    assert decode(text.encode(written), (written,))[0] == text


@pytest.mark.parametrize(
    ("codec", "bom"), [("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")]
)
def test_the_byte_order_mark_is_trusted_above_all(codec: str, bom: bytes) -> None:
    assert decode(bom + "水库".encode(codec), ("big5", "cp1251")) == ("水库", codec)


@pytest.mark.parametrize(("language", "written", "read"), MATRIX[:16])
def test_a_long_head_of_ascii_says_nothing(language: str, written: str, read: str) -> None:
    text = "<script>var a = 'x';</script>\n" * 1000 + SENTENCES[language] + "</p>" * 2000
    for declared in ((), ("iso-8859-1",), ("utf-8",)):
        assert decode(text.encode(written), declared) == (text, read)


def test_http_before_meta() -> None:
    data = "Привет, мир".encode("cp1251")
    assert decode(data, ("windows-1251", "koi8-r"))[1] == "cp1251"
    assert decode("Привет, мир".encode("koi8-r"), ("koi8-r", "windows-1251"))[1] == "koi8-r"


@pytest.mark.parametrize(
    ("label", "codec"),
    [("GB2312", "gb18030"), ("ISO-8859-1", "cp1252"), (' "Shift_JIS" ', "cp932"), ("EUC-KR", "cp949"),
     ("UTF8", "utf-8"), ("rot13", ""), ("hex", ""), ("", ""), ("日本", ""), ("a\x00b", "")],
)  # fmt: skip
def test_labels_mean_what_browsers_take_them_for(label: str, codec: str) -> None:
    assert python_codec(label) == codec


def test_one_bad_byte_does_not_change_the_language() -> None:
    data = SENTENCES["zh"].encode() * 5
    text, codec = decode(data[:100] + b"\xff" + data[100:])
    assert codec == "utf-8"
    assert 1 <= text.count("\ufffd") <= 4


def test_mixed_encodings_in_mostly_ascii_text_are_kept() -> None:
    text = "The gauge was read each morning at the old mill. " * 20
    data = text.encode() + "—水位—".encode() * 3 + b"\xe9\xff\x81" + text.encode()
    got, codec = decode(data, ("utf-8",))
    assert (codec, got.count("\ufffd")) == ("utf-8", 3)
    assert "—水位—" in got


def test_a_cut_last_character_of_declared_gbk() -> None:
    data = SENTENCES["zh"].encode("gbk")[:-1]
    text, codec = decode(data, ("gbk",))
    assert codec == "gb18030"
    assert text.startswith(SENTENCES["zh"][:-1])


@pytest.mark.parametrize(
    "data", [bytes(range(256)) * 4, b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\xc0\xff\xfe\xc1" * 9]
)
def test_binary_data_are_no_text(data: bytes) -> None:
    with pytest.raises(UndecodableText):
        decode(data)


def test_empty_and_ascii() -> None:
    assert decode(b"") == ("", "utf-8")
    assert decode(b"plain", ("shift_jis",)) == ("plain", "utf-8")
