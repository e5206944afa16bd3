"""The pages' code: it parses, speaks both languages, stays in small rooms and never makes markup of data."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dataflow_ops.airflow.steps import LAYER_TITLES
from dataflow_ops.console.said import SAID
from dataflow_ops.pipeline.version_states import WITH_SET

STATIC = Path(__file__).parents[3] / "plugins" / "dataflow_ui" / "static"
MODULES = sorted(STATIC.rglob("*.js"))
WORDS = {language: sorted((STATIC / "words" / language).glob("*.js")) for language in ("en", "zh")}
LONGEST = 400
MARKUP = (
    "dangerouslySetInnerHTML",
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
)
ENTRY = re.compile(r'^  "([^"]+)": "((?:[^"\\]|\\.)*)",$', re.MULTILINE)
CALL = re.compile(r'\bt\(\s*(?:"([^"]+)"|`([^`$]*)\$\{)')
"""A call with a whole key, or with one whose beginning is fixed."""
IMPORT = re.compile(r'from "(\.[^"]+)"')
NAMED = re.compile(r'import \{([^}]*)\} from "(\.[^"]+)"')


def names(path: Path) -> str:
    """A module's path for a test's name."""
    return path.relative_to(STATIC).as_posix()


def dictionary(language: str) -> dict[str, str]:
    """The words of one language."""
    text = "".join(module.read_text(encoding="utf-8") for module in WORDS[language])
    entries = ENTRY.findall(text)
    assert len(entries) == len(dict(entries)), f"{language}: a key stands twice"
    assert len(entries) == sum(line.startswith('  "') for line in text.splitlines()), f"{language}: odd lines"
    return dict(entries)


def used() -> tuple[set[str], set[str]]:
    """Whole keys and beginnings of keys that the modules ask for."""
    whole: set[str] = set()
    beginnings: set[str] = set()
    for module in MODULES:
        text = module.read_text(encoding="utf-8")
        for key, beginning in CALL.findall(text):
            (whole if key else beginnings).add(key or beginning)
        # A badge is told the family of its words.
        beginnings |= {f"{family}." for family in re.findall(r'words: "(\w+)"', text)}
        # Keys chosen between two, or kept in a variable first, are plain strings of the same form.
        whole |= {key for key in re.findall(r'"([a-z_]+\.[a-z_]+)"', text) if "words" not in module.parts}
    return whole, beginnings - {""}


def test_there_are_modules() -> None:
    assert {"run.js", "product.js"} <= {names(module) for module in MODULES}


@pytest.mark.parametrize("module", MODULES, ids=names)
def test_module_parses(module: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    source = module.read_bytes()
    done = subprocess.run(
        [node, "--input-type=module", "--check"], input=source, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("module", MODULES, ids=names)
def test_module_is_small_and_makes_no_markup(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    assert text.count("\n") <= LONGEST
    for danger in MARKUP:
        assert danger not in text


@pytest.mark.parametrize("module", MODULES, ids=names)
def test_imports_exist(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    for target in IMPORT.findall(text):
        assert (module.parent / target).is_file(), target
    for wanted, target in NAMED.findall(text):
        source = (module.parent / target).read_text(encoding="utf-8")
        for name in (part.strip() for part in wanted.split(",")):
            if name:
                assert re.search(rf"export (async )?(function|const|class) {name}\b", source) or re.search(
                    rf"export const \{{[^}}]*\b{name}\b[^}}]*\}}", source
                ), f"{target} has no {name}"


@pytest.mark.parametrize("module", MODULES, ids=names)
def test_imports_are_used(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    for wanted, _ in NAMED.findall(text):
        for name in (part.strip() for part in wanted.split(",")):
            if name:
                assert len(re.findall(rf"(?<![\w.]){name}\b", text)) > 1, f"{name} is imported and not used"


@pytest.mark.parametrize("module", MODULES, ids=names)
def test_components_are_imported(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    for name in set(re.findall(r"\bh\(\s*([A-Z]\w*)[,)]", text)):
        known = re.search(rf"(function|const) {name}\b|import \{{[^}}]*\b{name}\b", text)
        assert known, f"{name} is used and not imported"


def test_no_module_imports_itself_in_a_circle() -> None:
    edges = {
        module: [(module.parent / target).resolve() for target in IMPORT.findall(module.read_text("utf-8"))]
        for module in (path.resolve() for path in MODULES)
    }
    done: set[Path] = set()

    def walk(module: Path, above: tuple[Path, ...]) -> None:
        assert module not in above, " → ".join(path.name for path in (*above, module))
        if module not in done:
            for target in edges[module]:
                walk(target, (*above, module))
            done.add(module)

    for module in edges:
        walk(module, ())


def test_languages_have_the_same_keys() -> None:
    english, chinese = dictionary("en"), dictionary("zh")
    singular = {key for key in english if key.endswith("_one")}
    assert {key.removesuffix("_one") for key in singular} <= set(english)
    assert set(english) - singular == set(chinese)


def test_languages_fill_in_the_same_names() -> None:
    english, chinese = dictionary("en"), dictionary("zh")
    for key, words in chinese.items():
        assert set(re.findall(r"\{(\w+)\}", words)) == set(re.findall(r"\{(\w+)\}", english[key])), key


def test_every_key_that_is_used_exists_and_every_key_is_used() -> None:
    whole, beginnings = used()
    english = set(dictionary("en"))
    spaces = {key.split(".")[0] for key in english}
    asked = {key for key in whole if key.split(".")[0] in spaces and not key.endswith(".js")}
    assert asked <= english
    for beginning in beginnings:
        assert any(key.startswith(beginning) for key in english), beginning
    idle = {
        key
        for key in english
        if key.removesuffix("_one") not in whole and not any(key.startswith(start) for start in beginnings)
    }
    assert idle == set()


def test_what_is_counted_has_a_word_for_one() -> None:
    english = dictionary("en")
    counted = {
        key
        for key, words in english.items()
        if re.search(r"\{(?:count|total|documents)\} (?:dead )?[a-z]+s\b(?!/)", words)
    }
    assert {key for key in counted if f"{key}_one" not in english} == set()


def pair(*versions: dict[str, object]) -> tuple[str, str]:
    """The two versions, by name, that a comparison begins with."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    source = (STATIC / "product" / "pair.js").read_text(encoding="utf-8")
    asked = f"{source}\nprocess.stdout.write(JSON.stringify(defaultPair({json.dumps(versions)})));"
    done = subprocess.run(
        [node, "--input-type=module"], input=asked, capture_output=True, text=True, check=True, timeout=60
    )
    found = json.loads(done.stdout)
    return found["a"], found["b"]


def test_a_comparison_begins_with_full_versions() -> None:
    def version(name: str, mode: str = "full", state: str = "PUBLISHED") -> dict[str, object]:
        return {"version": name, "mode": mode, "state": state, "current": name == "now"}

    day, waiting = version("day", "incremental"), version("new", state="WAITING")
    now, old, refused = version("now"), version("old"), version("refused", state="REJECTED")
    assert pair(day, now, day, refused, old) == ("old", "now")
    assert pair(version("day", "incremental", "WAITING"), now, old) == ("old", "now")
    assert pair(day, waiting, now, old) == ("now", "new")
    assert pair(day, now) == ("day", "now"), "one full version: a day is all there is to set it against"
    assert pair(version("day 2", "incremental"), day) == ("day", "day 2")


def test_every_sentence_of_the_server_has_words_in_both_languages() -> None:
    """English is the server's own, so that a page and the command line say the same."""
    english, chinese = dictionary("en"), dictionary("zh")
    assert {key: words for key, words in english.items() if key.startswith("said.")} == {
        f"said.{code}": words for code, words in SAID.items()
    }
    assert {f"said.{code}" for code in SAID if not code.endswith("_one")} <= set(chinese)


def test_a_layer_has_one_name_in_each_language_as_in_the_grid() -> None:
    titles = {name: tuple(title.split(" · ")) for name, title in LAYER_TITLES.items()}
    for at, language in enumerate(("en", "zh")):
        words = dictionary(language)
        assert {name: words[f"layer.{name}"] for name in titles} == {
            name: t[at] for name, t in titles.items()
        }


def test_the_pages_know_the_reason_that_they_word_themselves() -> None:
    source = (STATIC / "kit" / "reasons.js").read_text(encoding="utf-8")
    assert re.findall(r'HELD = "([^"]+)"', source) == [WITH_SET]


def test_every_code_that_the_server_says_is_listed() -> None:
    root = STATIC.parents[2]
    sources = [
        *(root / "dataflow_ops" / "console").glob("*.py"),
        *(root / "plugins" / "dataflow_ui").glob("*.py"),
    ]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    calls = re.findall(r"\b(?:said|fault)\(\s*(?:\w+,\s*)?([^)]*?)[,)]", text)
    codes = {code for call in calls for code in re.findall(r'"(\w+)"', call)}
    assert codes == {code for code in SAID if not code.endswith("_one")}
