// The six layers as a funnel: what came in, what stayed, how fast, and whether that is as always.
import { box, h, row, text, UI } from "../kit/h.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { Empty, Loaded } from "../kit/notes.js";
import { NARROW, Panel, SURFACE } from "../kit/panel.js";
import { untilComplete, usePoll } from "../kit/poll.js";
import { ICONS, LAYER_TONES, lossTone } from "../kit/tones.js";

const GRID = {
  display: "grid",
  gridTemplateColumns: "8.5rem minmax(6rem, 1fr) 4.5rem 4.5rem 4.5rem 5.5rem 5.5rem 6.2rem",
  columnGap: 3,
  alignItems: "center",
  width: "100%",
  px: 3,
  css: {
    [NARROW]: { gridTemplateColumns: "6.5rem minmax(3rem, 1fr) 3.8rem 4.2rem 5.9rem", "& [data-wide]": { display: "none" }, "& [data-narrow]": { display: "block" } },
  },
};

const number = (props, ...children) =>
  box({ textAlign: "end", fontVariantNumeric: "tabular-nums", fontSize: "sm", whiteSpace: "nowrap", ...props }, ...children);

/** The change of the share kept against the last full run: a sign, a number, and a colour. */
function Change({ layer }) {
  const { t, f } = useText();
  if (layer.change === null || layer.change === undefined) return number({ color: "fg.subtle" }, "–");
  // Where more is kept than before nothing warns.
  const tone = lossTone(-layer.change);
  const title = layer.previous
    ? t("funnel.change_title", {
        now: f.share(1 - layer.removed_share),
        before: f.share(1 - layer.previous.removed_share),
      })
    : undefined;
  return number(
    tone ? { colorPalette: tone, color: "colorPalette.fg", fontWeight: "semibold", title } : { color: "fg.muted", title },
    Math.abs(layer.change) >= 0.005 && h(Icon, { name: layer.change > 0 ? "up" : "down", display: "inline", mr: 0.5, verticalAlign: "-0.125em" }),
    t("funnel.points", { change: f.points(layer.change) }),
  );
}

/** The bar of a layer: its room is what came in, its filled part what stayed. */
function LayerBar({ layer, widest }) {
  const came = widest > 0 ? layer.in / widest : 0;
  const kept = widest > 0 ? layer.kept / widest : 0;
  const tone = LAYER_TONES[layer.state] ?? "none";
  return box(
    { height: 4, position: "relative", "aria-hidden": true },
    box({
      position: "absolute",
      inset: 0,
      right: "auto",
      borderRadius: "sm",
      bg: "bg.emphasized",
      style: { width: `${came * 100}%` },
      transition: "width 0.6s ease",
    }),
    box({
      position: "absolute",
      inset: 0,
      right: "auto",
      borderRadius: "sm",
      colorPalette: tone === "none" ? "gray" : tone === "success" ? "brand" : tone,
      bg: "colorPalette.solid",
      style: { width: `${kept * 100}%` },
      transition: "width 0.6s ease",
    }),
  );
}

function LayerRow({ layer, widest, chosen, onLayer }) {
  const { t, f } = useText();
  const begun = layer.state !== "waiting";
  const name = t(`layer.${layer.layer}`);
  const state = t(`layer_state.${layer.state}`);
  const tokens = typeof layer.tokens_per_s === "number" ? `≈ ${f.rate(layer.tokens_per_s)}` : "–";
  const shown = (value, format) => (begun ? format(value) : "–");
  const speech = t("funnel.speech", {
    layer: name,
    state,
    in: f.number(layer.in),
    kept: f.number(layer.kept),
    share: f.share(layer.removed_share),
  });
  return h(
    UI.Box,
    {
      as: "button",
      type: "button",
      "aria-pressed": chosen,
      "aria-label": speech,
      title: chosen ? t("funnel.clear") : t("funnel.choose", { layer: name }),
      onClick: () => onLayer(chosen ? "" : layer.layer),
      ...GRID,
      py: 1.5,
      textAlign: "start",
      cursor: "pointer",
      borderLeftWidth: 3,
      borderLeftColor: chosen ? "brand.solid" : "transparent",
      bg: chosen ? "brand.subtle" : undefined,
      _hover: { bg: chosen ? "brand.subtle" : SURFACE },
      _focusVisible: { outline: "2px solid", outlineColor: "brand.focusRing", outlineOffset: "-2px" },
    },
    row(
      { flexWrap: "nowrap", gap: 1.5, minW: 0 },
      box(
        { colorPalette: LAYER_TONES[layer.state] ?? "none", color: "colorPalette.fg", display: "flex", title: state },
        h(Icon, { name: ICONS[layer.state] ?? "clock" }),
      ),
      box(
        { minW: 0 },
        box({ fontSize: "sm", fontWeight: "medium", color: begun ? "fg" : "fg.muted" }, name),
        layer.layer === "ingest" && begun && box({ fontSize: "xs", color: "fg.muted" }, t("funnel.files")),
        layer.parts > 0 &&
          box(
            { fontSize: "xs", color: "fg.muted", title: t("funnel.parts_help") },
            t("funnel.parts", { count: f.number(layer.parts) }),
          ),
        layer.tasks > 0 &&
          begun &&
          layer.state !== "done" &&
          box(
            { fontSize: "xs", color: "fg.muted", whiteSpace: "nowrap" },
            t("funnel.tasks", { done: f.number(layer.done), total: f.number(layer.tasks), count: layer.tasks }),
          ),
      ),
    ),
    box(
      { minW: 0 },
      h(LayerBar, { layer, widest }),
      begun &&
        box(
          { "data-narrow": "", display: "none", fontSize: "2xs", color: "fg.muted", mt: 0.5, overflowWrap: "anywhere" },
          t("funnel.rates", { in: f.compact(layer.in), documents: f.rate(layer.documents_per_s), tokens }),
        ),
    ),
    number({ "data-wide": "", color: "fg.muted", title: f.number(layer.in) }, shown(layer.in, f.compact)),
    number({ title: f.number(layer.kept), fontWeight: "medium" }, shown(layer.kept, f.compact)),
    number({ title: t("funnel.removed_title", { count: f.number(layer.removed) }) }, shown(layer.removed_share, f.share)),
    number({ "data-wide": "", color: "fg.muted" }, f.rate(layer.documents_per_s)),
    number({ "data-wide": "", color: "fg.muted" }, tokens),
    h(Change, { layer }),
  );
}

export function Funnel({ run, layer: chosen, every, onLayer }) {
  const { t } = useText();
  const poll = usePoll("run/layers", { run: run.run }, { every: untilComplete(every) });
  const heads = [
    ["", {}],
    ["", {}],
    [t("funnel.in"), { "data-wide": "" }],
    [t("funnel.kept"), {}],
    [t("funnel.removed"), {}],
    [t("funnel.documents_per_s"), { "data-wide": "" }],
    [t("funnel.tokens_per_s"), { "data-wide": "", title: t("funnel.estimated") }],
    [t("funnel.change"), { title: t("funnel.change_help") }],
  ];
  return h(
    Panel,
    { title: t("funnel.title"), note: t("funnel.note"), flush: true },
    box(
      { pb: 1 },
      h(Loaded, { poll, lines: 6 }, (data) => {
        const widest = Math.max(0, ...data.layers.map((layer) => layer.in));
        if (data.layers.length === 0) return box({ p: 3 }, h(Empty, { icon: "clock" }, t("funnel.empty")));
        return box(
          {},
          box(
            { ...GRID, pt: 2, pb: 1, borderLeftWidth: 3, borderLeftColor: "transparent", "aria-hidden": true },
            ...heads.map(([head, props], index) =>
              text(
                { key: index, fontSize: "xs", fontWeight: "semibold", color: "fg.muted", textAlign: "end", ...props },
                head,
              ),
            ),
          ),
          ...data.layers.map((layer) =>
            h(LayerRow, { key: layer.layer, layer, widest, chosen: layer.layer === chosen, onLayer }),
          ),
          data.previous_run &&
            box(
              { px: 3, pt: 1.5, fontSize: "xs", color: "fg.muted", overflowWrap: "anywhere" },
              t("funnel.change_caption", { run: data.previous_run }),
            ),
        );
      }),
    ),
  );
}

/** Says that all below shows one layer alone, and takes that back. */
export function LayerFilter({ layer, onClear }) {
  const { t } = useText();
  return row(
    { fontSize: "sm", px: 1 },
    h(Icon, { name: "filter", color: "fg.muted" }),
    t("funnel.filtered", { layer: t(`layer.${layer}`) }),
    h(UI.Button, { size: "xs", variant: "outline", onClick: onClear }, h(Icon, { name: "cross" }), t("funnel.clear")),
  );
}
