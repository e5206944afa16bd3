// Where is this in our data? By document id, by URL, or by a piece of text pasted in.
import { box, column, h, row, text, UI, useEffect, useState } from "../kit/h.js";
import { StateBadge, Tag } from "../kit/badge.js";
import { CliLine } from "../kit/cli.js";
import { alikeWords, CopyOf } from "../kit/copy_of.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { PageLink, productPath } from "../kit/links.js";
import { Empty, Loaded } from "../kit/notes.js";
import { Panel } from "../kit/panel.js";
import { usePoll } from "../kit/poll.js";
import { useQuery } from "../kit/query.js";
import { Select } from "../kit/select.js";
import { DOCUMENT_TONES } from "../kit/tones.js";
import { Name } from "../kit/words.js";
import { Lineage } from "./lineage.js";

/** Longer texts than this have no room in an address. */
const LONGEST = 1500;
const WAYS = ["auto", "id", "url", "text"];

function Form({ query, by, onSearch }) {
  const { t } = useText();
  const [words, setWords] = useState(query);
  const [way, setWay] = useState(by);
  useEffect(() => {
    setWords(query);
    setWay(by);
  }, [query, by]);
  const submit = (event) => {
    event?.preventDefault();
    onSearch(words.trim(), way);
  };
  return h(
    UI.Box,
    { as: "form", onSubmit: submit, role: "search" },
    h(UI.Textarea, {
      value: words,
      rows: words.length > 120 ? 5 : 2,
      autoFocus: query === "",
      "aria-label": t("search.label"),
      placeholder: t("search.placeholder"),
      onChange: (event) => setWords(event.target.value),
      onKeyDown: (event) => {
        event.nativeEvent.stopPropagation();
        // Enter searches; a line break in pasted text needs Shift.
        if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) submit(event);
      },
    }),
    row(
      { mt: 2 },
      h(UI.Button, { type: "submit", size: "sm", disabled: words.trim() === "" }, h(Icon, { name: "search" }), t("search.go")),
      h(Select, {
        label: t("search.by"),
        value: way,
        onChange: setWay,
        options: WAYS.map((name) => [name, t(`search.by_${name}`)]),
        width: "auto",
      }),
      text({ color: "fg.muted", fontSize: "xs" }, t("search.how")),
    ),
  );
}

function Result({ result, open, onToggle }) {
  const words = useText();
  const { t } = words;
  const key = { dataset: result.dataset, version: result.version, doc_id: result.doc_id };
  return box(
    { px: 3, py: 3, borderTopWidth: 1, borderColor: "border", _first: { borderTopWidth: 0 } },
    row(
      { rowGap: 1, alignItems: "center" },
      h(StateBadge, { state: result.status, tones: DOCUMENT_TONES, words: "document", size: "sm" }),
      result.rule && h(Tag, { fontFamily: "mono" }, result.rule),
      text({ fontSize: "sm" }, result.dataset),
      h(
        PageLink,
        { to: productPath({ view: "versions", dataset: result.dataset, version: result.version }), fontSize: "xs", fontFamily: "mono" },
        result.version,
      ),
      box({ flex: 1 }),
      text(
        { fontSize: "xs", color: "fg.muted" },
        result.exact ? t("search.exact") : alikeWords(result.similarity, result.enough, words),
      ),
      result.doc_id !== "" &&
        h(
          UI.Button,
          { size: "xs", variant: "outline", onClick: onToggle, "aria-expanded": open },
          h(Icon, { name: open ? "up" : "down" }),
          t("search.why"),
        ),
    ),
    row(
      { mt: 1, gap: 3, rowGap: 0, fontSize: "xs", color: "fg.muted" },
      h(Name, { length: 100, color: "fg" }, result.url || result.path),
      text({}, [result.source, result.domain, result.language].filter(Boolean).join(" · ")),
      text({ fontFamily: "mono" }, result.doc_id),
      result.shard && text({}, t("search.shard", { shard: result.shard })),
    ),
    result.survivor && h(CopyOf, { mt: 1, dataset: result.dataset, of: { rule: result.rule, survivor: result.survivor } }),
    result.snippet && box({ mt: 1, fontSize: "sm", color: "fg.muted", lineClamp: 2, overflowWrap: "anywhere" }, result.snippet),
    open && result.doc_id !== "" && box({ mt: 3 }, h(Lineage, key)),
  );
}

function Results({ data }) {
  const { t, f } = useText();
  const [read, write] = useQuery();
  const chosen = read("document");
  const id = (result) => `${result.version}/${result.doc_id || result.path}`;
  const searched = t("search.searched", {
    versions: f.number(data.searched.versions),
    chunks: f.number(data.searched.chunks),
  });
  return h(
    Panel,
    {
      title: t("search.found", { count: data.results.length }),
      note: [t(`search.by_${data.by}`), searched, data.complete ? "" : t("search.incomplete")].filter(Boolean).join(" · "),
      aside: h(CliLine, { command: data.cli, maxW: "24rem" }),
      flush: data.results.length > 0,
    },
    data.results.length === 0
      ? h(Empty, { title: t("search.nothing"), icon: "search" }, t(`search.nothing_${data.by}`))
      : data.results.map((result) =>
          h(Result, {
            key: id(result),
            result,
            // A single hit is what was looked for: its reasons show at once.
            open: chosen === id(result) || (chosen === "" && data.results.length === 1),
            onToggle: () => write({ document: chosen === id(result) ? "none" : id(result) }, { replace: true }),
          }),
        ),
    data.query?.sha1 &&
      box(
        { px: data.results.length > 0 ? 3 : 0, py: 2, fontSize: "xs", color: "fg.muted" },
        t("search.folded", { sha1: data.query.sha1, count: f.number(data.query.folded_length) }),
      ),
  );
}

export function Search({ dataset }) {
  const { t } = useText();
  const [read, write] = useQuery();
  const [pasted, setPasted] = useState("");
  const query = pasted || read("q");
  const long = pasted !== "";
  const by = WAYS.includes(read("by")) ? read("by") : "auto";
  const poll = usePoll(query ? "search" : null, { q: query, dataset, by }, { every: 0, send: long });
  return column(
    { gap: 3 },
    h(
      Panel,
      null,
      h(Form, {
        query,
        by,
        onSearch: (words, way) => {
          const tooLong = words.length > LONGEST;
          setPasted(tooLong ? words : "");
          write({ q: tooLong ? "" : words, by: way === "auto" ? "" : way, document: "" });
        },
      }),
    ),
    long && box({ fontSize: "xs", color: "fg.muted", px: 1 }, t("search.long")),
    query && (poll.data === null ? h(Panel, null, h(Loaded, { poll, lines: 4 }, () => null)) : h(Results, { data: poll.data })),
  );
}
