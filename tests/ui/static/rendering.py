"""Renders a component of the pages in node, with the host's libraries replaced by the least that will do."""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

STATIC = Path(__file__).parents[3] / "plugins" / "dataflow_ui" / "static"

POLL = """
import { createContext } from "./h.js";
export const FAST_MS = 2000;
export const SLOW_MS = 15000;
export const Pulse = createContext({ tick: 0, pulse: () => {} });
export const usePulse = () => ({ tick: 0, pulse: () => {} });
export const untilComplete = (every) => () => every;
export function usePoll(path) {
  const data = globalThis.answered[path] ?? null;
  return { data, error: null, failedAt: null, loading: data === null, stale: false };
}
"""
"""In place of what asks the server: the answers that a test gives, at once."""

HOST = """
const noop = () => {};
globalThis.document = { documentElement: { lang: INPUT.language }, baseURI: "https://host/", hidden: false };
globalThis.React = {
  createElement: (type, props, ...children) => ({
    type,
    props: { ...props, children: children.length > 1 ? children : children[0] ?? props?.children },
  }),
  createContext: (value) => ({ value, Provider: "Provider" }),
  Fragment: "Fragment",
  useCallback: (f) => f,
  useContext: (context) => context.value,
  useEffect: noop,
  useId: () => "id",
  useMemo: (f) => f(),
  useRef: (value) => ({ current: value }),
  useState: (first) => [typeof first === "function" ? first() : first, noop],
  useSyncExternalStore: (_, snapshot) => snapshot(),
};
globalThis.answered = INPUT.answers;
globalThis.ChakraUI = new Proxy({}, { get: (_, name) => {
  const part = (suffix) => ({ host: `${String(name)}${suffix}` });
  const whole = part("");
  return new Proxy(whole, { get: (target, key) => (key === "host" ? target.host : part(`.${String(key)}`)) });
} });
globalThis.ReactRouterDOM = {
  Link: { host: "Router.Link" },
  useNavigate: () => noop,
  useLocation: () => ({ pathname: "/", search: INPUT.search, hash: "" }),
  useSearchParams: () => [new URLSearchParams(INPUT.search), noop],
};
const module = await import(INPUT.module);
const found = [];
const words = (node) => {
  if (node === null || node === undefined || typeof node === "boolean") return "";
  if (Array.isArray(node)) return node.map(words).join("");
  if (typeof node !== "object") return String(node);
  const { type, props } = node;
  if (typeof type === "function") return words(type(props));
  const own = { type: type?.host ?? String(type) };
  for (const [name, value] of Object.entries(props)) {
    if (["string", "number", "boolean"].includes(typeof value)) own[name] = value;
  }
  found.push(own);
  own.text = words(props.children);
  return own.text;
};
const text = words(React.createElement(module[INPUT.component], INPUT.props));
process.stdout.write(JSON.stringify({ text, elements: found }));
"""


@cache
def _pages() -> Path:
    """The pages' code, with a poll that knows its answers."""
    folder = Path(tempfile.mkdtemp(prefix="pages-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(STATIC, folder / "static")
    (folder / "static" / "kit" / "poll.js").write_text(POLL, encoding="utf-8")
    return folder / "static"


@dataclass(frozen=True)
class Rendered:
    """What a reader sees.

    Attributes:
        text: all words.
        elements: type, plain properties and words of every element, outer ones first.
    """

    text: str
    elements: list[dict[str, Any]]

    def one(self, **wanted: object) -> dict[str, Any]:
        """The only element that has these properties."""
        (found,) = [e for e in self.elements if all(e.get(key) == value for key, value in wanted.items())]
        return found


def render(
    module: str,
    component: str,
    props: dict[str, Any],
    *,
    answers: dict[str, Any] | None = None,
    language: str = "en",
    search: str = "",
) -> Rendered:
    """Render once: effects don't run.

    Args:
        module: path below ``static``.
        component: its name there.
        props: what it is given.
        answers: by route, of those that it and those inside it ask.
        language: ``en`` or ``zh``.
        search: query of the page's address.
    """
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    given = {
        "module": (_pages() / module).as_uri(),
        "component": component,
        "props": props,
        "answers": answers or {},
        "language": language,
        "search": search,
    }
    done = subprocess.run(
        [node, "--input-type=module"],
        input=f"const INPUT = {json.dumps(given)};\n{HOST}",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return Rendered(**json.loads(done.stdout))
