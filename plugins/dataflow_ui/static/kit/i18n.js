// English and Chinese, following the language that the host is set to, also when it changes.
import { formats, hostTimeZone } from "./format.js";
import { useMemo, useSyncExternalStore } from "./h.js";
import en from "../words/en.js";
import zh from "../words/zh.js";

const DICTIONARIES = { en, zh };

/** The host's language ("zh-CN", "en", …): its own setting first, then the page's, then the browser's. */
function hostLanguage() {
  return (
    globalThis.localStorage?.getItem("i18nextLng") || document.documentElement.lang || navigator.language || "en"
  );
}

function subscribe(changed) {
  // The host marks the document when its language changes.
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["lang"] });
  globalThis.addEventListener("storage", changed);
  return () => {
    observer.disconnect();
    globalThis.removeEventListener("storage", changed);
  };
}

/**
 * The text of a key with `{name}` filled in. `count` picks the `_one` form where the language has one.
 * A key that does not exist is shown as it is: visible, never silent.
 */
export function translate(language, key, values = {}) {
  const words = DICTIONARIES[language];
  let found = words[key];
  if (values.count !== undefined && new Intl.PluralRules(language).select(Number(values.count)) === "one") {
    found = words[`${key}_one`] ?? found;
  }
  if (found === undefined) return key;
  return found.replace(/\{(\w+)\}/g, (whole, name) => (values[name] === undefined ? whole : String(values[name])));
}

/** `{t, f, language}`: words, formatters, and "en" or "zh". */
export function useText() {
  const host = useSyncExternalStore(subscribe, hostLanguage);
  return useMemo(() => {
    const language = host.toLowerCase().startsWith("zh") ? "zh" : "en";
    return {
      language,
      t: (key, values) => translate(language, key, values),
      f: formats(language === "zh" ? "zh-CN" : "en-US", hostTimeZone()),
    };
  }, [host]);
}
