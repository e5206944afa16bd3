// One version: a line in the time line, and all about it when opened.
import { box, column, h, row, text, UI, useEffect, useRef } from "../kit/h.js";
import { StateBadge, Tag } from "../kit/badge.js";
import { StackedBar } from "../kit/bar.js";
import { CliLine } from "../kit/cli.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { dagPath, PageLink, runPath } from "../kit/links.js";
import { Label, NARROW, SURFACE } from "../kit/panel.js";
import { reasonWords } from "../kit/reasons.js";
import { VERSION_TONES } from "../kit/tones.js";
import { Name } from "../kit/words.js";
import { domainParts } from "./domains.js";
import { Drift } from "./drift.js";
import { Left, VersionActions } from "./version_actions.js";

const REASONS = 4;
const GRID = {
  display: "grid",
  gridTemplateColumns: "1.2rem minmax(14rem, 1.1fr) minmax(10rem, 1.4fr) 6.5rem 6.5rem",
  columnGap: 3,
  alignItems: "center",
  css: { [NARROW]: { gridTemplateColumns: "1.2rem minmax(9rem, 1fr) 5rem 5rem", "& [data-bar]": { display: "none" } } },
};

function Line({ version, tones, most, open, onToggle }) {
  const { t, f } = useText();
  const parts = domainParts(version, tones, (part) =>
    t("versions.part", { domain: part.domain, share: f.share(part.share), tokens: f.compact(part.tokens) }),
  );
  const label = t("versions.parts_label", {
    parts: version.domains.map((part) => `${part.domain} ${f.share(part.share)}`).join(", "),
  });
  const number = (value, name) =>
    box(
      { textAlign: "end", fontVariantNumeric: "tabular-nums", fontSize: "sm", lineHeight: "short" },
      value,
      box({ fontSize: "xs", color: "fg.muted" }, name),
    );
  return h(
    UI.Box,
    {
      as: "button",
      type: "button",
      "aria-expanded": open,
      onClick: onToggle,
      ...GRID,
      width: "100%",
      textAlign: "start",
      px: 3,
      py: 2.5,
      cursor: "pointer",
      bg: open ? "brand.subtle" : undefined,
      _hover: { bg: open ? "brand.subtle" : SURFACE },
      _focusVisible: { outline: "2px solid", outlineColor: "brand.focusRing", outlineOffset: "-2px" },
    },
    h(Icon, { name: open ? "up" : "down", color: "fg.muted" }),
    box(
      { minW: 0 },
      row(
        { gap: 1.5, rowGap: 1 },
        version.current && h(Tag, { tone: "success", variant: "solid", icon: "check" }, t("versions.current")),
        (!version.current || version.state !== "PUBLISHED") &&
          h(StateBadge, { state: version.state, tones: VERSION_TONES, words: "version_state", size: "sm" }),
        text({ fontSize: "xs", color: "fg.muted" }, f.time(version.published_at)),
        text(
          { fontSize: "xs", color: "fg.muted" },
          version.mode === "incremental"
            ? t("run.day", { day: version.data_date })
            : t(version.mode === "compact" ? "mode.compact" : "mode.full"),
        ),
      ),
      h(Name, { length: 52, fontWeight: "medium", display: "block", mt: 0.5 }, version.version),
    ),
    box({ "data-bar": "" }, h(StackedBar, { parts, width: most > 0 ? version.tokens / most : 0, label })),
    number(f.compact(version.documents), t("versions.documents")),
    number(`${version.tokens_estimated ? "≈ " : ""}${f.compact(version.tokens)}`, t("versions.tokens")),
  );
}

/** Why it waits; the first few reasons, because all of them stand in the drift below. */
function Waits({ reasons }) {
  const words = useText();
  const { t } = words;
  const more = reasons.length - REASONS;
  return box(
    { minW: 0 },
    text({ fontWeight: "semibold" }, t("versions.waits")),
    box(
      { as: "ul", pl: 4, listStyleType: "disc" },
      ...reasons.slice(0, REASONS).map((reason) => box({ as: "li", key: reason, overflowWrap: "anywhere" }, reasonWords(reason, words))),
    ),
    more > 0 && text({ color: "fg.muted" }, t("versions.waits_more", { count: more })),
  );
}

function Consumers({ consumers }) {
  const { t, f } = useText();
  if (consumers.length === 0) return box({ fontSize: "sm", color: "fg.muted" }, t("versions.consumers_none"));
  return column(
    { gap: 1 },
    ...consumers.map((consumer) =>
      row(
        { key: `${consumer.dag_id} ${consumer.run_id}`, fontSize: "sm", gap: 2, rowGap: 0 },
        h(PageLink, { to: dagPath(consumer.dag_id), fontWeight: "medium" }, consumer.dag_id),
        text({ color: "fg.muted", fontSize: "xs" }, [consumer.state, f.time(consumer.at)].filter(Boolean).join(" · ")),
      ),
    ),
  );
}

function Domains({ version, tones }) {
  const { f } = useText();
  return column(
    { gap: 1 },
    ...version.domains.map((part) =>
      row(
        { key: part.domain, fontSize: "sm", flexWrap: "nowrap" },
        box({ boxSize: 2.5, borderRadius: "2px", colorPalette: tones.get(part.domain) ?? "gray", bg: "colorPalette.solid", flexShrink: 0 }),
        text({ flex: 1, truncate: true }, part.domain),
        text({ fontVariantNumeric: "tabular-nums" }, f.compact(part.tokens)),
        text({ color: "fg.muted", fontSize: "xs", width: "3.5rem", textAlign: "end" }, f.share(part.share)),
      ),
    ),
  );
}

export function VersionCard({ version, before, dataset, tones, most, rights, consumers, onDone, open, asked, onToggle }) {
  const { t, f } = useText();
  const place = useRef(null);
  useEffect(() => {
    // A link to a version leads to it, however far down it stands.
    if (asked) place.current?.scrollIntoView({ block: "nearest" });
  }, []); // Only at first: later openings are the reader's own.
  return box(
    { ref: place, borderTopWidth: 1, borderColor: "border", _first: { borderTopWidth: 0 } },
    h(Line, { version, tones, most, open, onToggle }),
    open &&
      box(
        { px: 3, pt: 2, pb: 4, pl: { base: 3, md: 10 } },
        column(
          { gap: 4 },
          version.waits?.length > 0 &&
            row(
              { fontSize: "sm", alignItems: "flex-start", flexWrap: "nowrap", colorPalette: "warning" },
              h(Icon, { name: "alert", mt: 0.5, color: "colorPalette.fg" }),
              h(Waits, { reasons: version.waits }),
            ),
          version.left && h(Left, { left: version.left }),
          h(VersionActions, { version, before, dataset, rights, consumers, onDone }),
          h(
            UI.Grid,
            { templateColumns: "repeat(auto-fit, minmax(15rem, 1fr))", gap: 5 },
            box({}, h(Label, null, t("versions.domains")), h(Domains, { version, tones })),
            box(
              {},
              h(Label, null, t("versions.consumers")),
              h(Consumers, { consumers: version.consumers ?? [] }),
              h(Label, { mt: 3 }, t("versions.made_by")),
              version.dag_run_id
                ? h(PageLink, { to: runPath(version.dag_id, version.dag_run_id), fontSize: "sm" }, version.dag_id)
                : h(Name, { length: 48 }, version.run),
              typeof version.dead_letters === "number" &&
                box({ fontSize: "sm", mt: 1 }, t("versions.dead_letters", { count: f.number(version.dead_letters) })),
            ),
            box(
              {},
              h(Label, null, t("versions.commands")),
              column({ gap: 1 }, h(CliLine, { command: version.cli?.report }), h(CliLine, { command: version.cli?.verify })),
            ),
          ),
          box(
            {},
            h(Label, null, version.drift_against ? t("versions.drift_against", { version: version.drift_against }) : t("versions.drift")),
            version.drift.length > 0
              ? h(Drift, { drift: version.drift })
              : box({ fontSize: "sm", color: "fg.muted" }, t("versions.drift_none")),
          ),
        ),
      ),
  );
}
