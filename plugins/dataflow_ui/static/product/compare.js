// Two versions side by side: how much changed, and what caused it.
import { box, column, h, row, text, UI } from "../kit/h.js";
import { CliLine } from "../kit/cli.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { Empty, Loaded } from "../kit/notes.js";
import { Label, Panel, Stat } from "../kit/panel.js";
import { usePoll } from "../kit/poll.js";
import { useQuery } from "../kit/query.js";
import { Select } from "../kit/select.js";
import { Table } from "../kit/table.js";
import { settingText } from "../run/parameters.js";
import { Causes } from "./causes.js";
import { defaultPair, isIncrement } from "./pair.js";

/** What a list says of a version: its kind and day first, for ids look alike. */
function optionWords(version, { t, f }) {
  const kind = isIncrement(version) ? t("compare.increment", { day: version.data_date }) : t("compare.full");
  const words = [kind, f.time(version.published_at), version.current && t("versions.current"), version.version];
  return words.filter(Boolean).join(" · ");
}

function Choice({ label, value, versions, onChange }) {
  const words = useText();
  return box(
    { flex: "1 1 16rem", minW: 0 },
    h(Label, null, label),
    h(Select, {
      label,
      value,
      onChange,
      options: versions.map((version) => [version.version, optionWords(version, words)]),
    }),
  );
}

function Totals({ data }) {
  const { t, f } = useText();
  const { documents, tokens } = data;
  const change = (a, b) => (a > 0 ? `${f.signed(b - a)} (${f.points(b / a - 1)} %)` : f.signed(b - a));
  return row(
    { gap: 8, rowGap: 3, alignItems: "flex-start" },
    h(Stat, { label: t("compare.documents"), value: `${f.compact(documents.a)} → ${f.compact(documents.b)}`, hint: change(documents.a, documents.b) }),
    h(Stat, { label: t("compare.tokens"), value: `${f.compact(tokens.a)} → ${f.compact(tokens.b)}`, hint: change(tokens.a, tokens.b) }),
    h(Stat, { label: t("compare.added"), value: `+${f.compact(documents.added)}`, title: f.number(documents.added) }),
    h(Stat, { label: t("compare.removed"), value: `−${f.compact(documents.removed)}`, title: f.number(documents.removed) }),
    h(Stat, {
      label: t("compare.same"),
      value: f.compact(documents.same),
      title: f.number(documents.same),
      hint: documents.changed > 0 ? t("compare.changed", { count: f.compact(documents.changed) }) : null,
    }),
  );
}

function Domains({ domains: given }) {
  const { t, f } = useText();
  const domains = given.map((entry) => ({ domain: entry.domain, a: entry.tokens_a ?? 0, b: entry.tokens_b ?? 0 }));
  const most = Math.max(0, ...domains.map((entry) => Math.max(entry.a ?? 0, entry.b ?? 0)));
  const bar = (value, palette) =>
    box(
      { bg: "bg.muted", borderRadius: "full", overflow: "hidden", height: 1.5 },
      box({ height: "100%", colorPalette: palette, bg: palette === "gray" ? "colorPalette.emphasized" : "colorPalette.solid", style: { width: `${most > 0 ? ((value ?? 0) / most) * 100 : 0}%` } }),
    );
  return h(Table, {
    label: t("versions.domains"),
    rows: domains,
    id: (entry) => entry.domain,
    columns: [
      { name: "domain", title: t("compare.domain"), cell: (entry) => text({ fontWeight: "medium" }, entry.domain) },
      { name: "bars", title: "", width: "45%", cell: (entry) => column({ gap: 0.5, pt: 1, "aria-hidden": true }, bar(entry.a, "gray"), bar(entry.b, "brand")) },
      { name: "a", title: "A", end: true, cell: (entry) => text({ color: "fg.muted" }, f.compact(entry.a)) },
      { name: "b", title: "B", end: true, cell: (entry) => f.compact(entry.b) },
      { name: "change", title: t("funnel.change"), end: true, cell: (entry) => f.signed((entry.b ?? 0) - (entry.a ?? 0)) },
    ],
  });
}

function Settings({ settings }) {
  const { t } = useText();
  const mono = (content, props) => text({ fontFamily: "mono", fontSize: "xs", overflowWrap: "anywhere", ...props }, content);
  return h(Table, {
    label: t("compare.settings"),
    rows: settings,
    id: (entry) => entry.key,
    columns: [
      { name: "key", title: t("parameters.key"), cell: (entry) => mono(entry.key) },
      { name: "a", title: "A", cell: (entry) => mono(settingText(entry.a), { color: "fg.muted" }) },
      { name: "b", title: "B", cell: (entry) => mono(settingText(entry.b), { fontWeight: "semibold" }) },
    ],
  });
}

function Difference({ dataset, a, b }) {
  const { t } = useText();
  const poll = usePoll("versions/diff", { dataset, a, b }, { every: 0 });
  if (poll.data === null) return h(Panel, null, h(Loaded, { poll, lines: 6 }, () => null));
  const data = poll.data;
  return column(
    { gap: 3 },
    h(Panel, { title: t("compare.totals"), aside: h(CliLine, { command: data.cli, maxW: "26rem" }) }, h(Totals, { data })),
    h(Causes, { causes: data.causes, notes: data.notes ?? [], dataset }),
    h(Panel, { title: t("compare.domains"), note: t("compare.domains_note"), flush: true }, box({ px: 1, pb: 1 }, h(Domains, { domains: data.domains }))),
    h(
      Panel,
      { title: t("compare.settings"), flush: data.settings.length > 0 },
      data.settings.length > 0
        ? box({ px: 1, pb: 1 }, h(Settings, { settings: data.settings }))
        : h(Empty, null, t("compare.settings_same")),
    ),
  );
}

export function Compare({ dataset }) {
  const { t } = useText();
  const [read, write] = useQuery();
  const poll = usePoll("versions", { dataset });
  return h(Loaded, { poll, lines: 4 }, (data) => {
    const versions = data.versions;
    if (versions.length < 2) return h(Panel, null, h(Empty, { title: t("compare.few"), icon: "clock" }, t("compare.few_next")));
    const pair = defaultPair(versions);
    const a = read("a") || pair.a;
    const b = read("b") || pair.b;
    return column(
      { gap: 3 },
      h(
        Panel,
        null,
        row(
          { gap: 3, alignItems: "flex-end" },
          h(Choice, { label: t("compare.a"), value: a, versions, onChange: (value) => write({ a: value, b }) }),
          h(
            UI.IconButton,
            { size: "sm", variant: "outline", "aria-label": t("compare.swap"), title: t("compare.swap"), onClick: () => write({ a: b, b: a }) },
            h(Icon, { name: "swap" }),
          ),
          h(Choice, { label: t("compare.b"), value: b, versions, onChange: (value) => write({ a, b: value }) }),
        ),
      ),
      a === b ? h(Panel, null, h(Empty, null, t("compare.equal"))) : h(Difference, { key: `${a} ${b}`, dataset, a, b }),
    );
  });
}
