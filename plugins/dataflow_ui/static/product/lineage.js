// What became of one document, step by step.
import { CopyOf } from "../kit/copy_of.js";
import { box, Fragment, h, row, text, UI, useState } from "../kit/h.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { Empty, Loaded } from "../kit/notes.js";
import { Label, Stat, SURFACE } from "../kit/panel.js";
import { usePoll } from "../kit/poll.js";
import { useRights } from "../kit/rights.js";
import { bound, Name } from "../kit/words.js";

const VERDICTS = {
  kept: { icon: "check", tone: "success" },
  rejected: { icon: "cross", tone: "danger" },
  removed: { icon: "cross", tone: "danger" },
  dead: { icon: "alert", tone: "danger" },
};
/** From this many on, passed rules are folded into one line. */
const FOLDED = 4;
const OTHER = { icon: "minus", tone: "gray" };

function Step({ step }) {
  const { t, f } = useText();
  const look = VERDICTS[step.verdict] ?? OTHER;
  const allowed = bound(t, f, step);
  return row(
    { gap: 2, rowGap: 0, fontSize: "sm", py: 0.5 },
    box({ colorPalette: look.tone, color: "colorPalette.fg", display: "flex" }, h(Icon, { name: look.icon })),
    text({ width: "5rem", fontWeight: "medium" }, step.step),
    text({}, t(`verdict.${step.verdict}`)),
    step.rule && text({ fontFamily: "mono", fontSize: "xs" }, step.rule),
    step.detail && text({ color: "fg.muted", overflowWrap: "anywhere" }, step.detail),
    typeof step.value === "number" &&
      text(
        { color: "fg.muted" },
        `${t("removed.value")} `,
        text({ color: "fg", fontWeight: "semibold", fontVariantNumeric: "tabular-nums" }, f.exact(step.value)),
        allowed && ` · ${allowed}`,
      ),
  );
}

/** All steps; the rules that a document passed are one line until somebody asks. */
function Steps({ steps }) {
  const { t, f } = useText();
  const [open, setOpen] = useState(false);
  const passed = (step) => step.verdict === "kept" && Boolean(step.rule);
  const count = steps.filter(passed).length;
  const first = steps.findIndex(passed);
  if (count < FOLDED) return steps.map((step, index) => h(Step, { key: index, step }));
  return steps.map((step, index) => {
    const fold =
      index === first &&
      row(
        { gap: 2, fontSize: "sm", py: 0.5 },
        box({ colorPalette: "success", color: "colorPalette.fg", display: "flex" }, h(Icon, { name: "check" })),
        text({ width: "5rem", fontWeight: "medium" }, step.step),
        t("lineage.passed", { count: f.number(count) }),
        h(
          UI.Button,
          { size: "2xs", variant: "outline", "aria-expanded": open, onClick: () => setOpen(!open) },
          h(Icon, { name: open ? "up" : "down" }),
          t(open ? "lineage.fold" : "lineage.unfold"),
        ),
      );
    return [
      fold && h(Fragment, { key: "fold" }, fold),
      (open || !passed(step)) && h(Step, { key: index, step }),
    ];
  });
}

export function Lineage({ dataset, version, doc_id: docId }) {
  const { t, f } = useText();
  const rights = useRights(dataset);
  const poll = usePoll("document", { dataset, version, doc_id: docId }, { every: 0 });
  return h(Loaded, { poll, lines: 4 }, (data) =>
    box(
      { borderWidth: 1, borderColor: "border", borderRadius: "md", bg: SURFACE, p: 3 },
      row(
        { gap: 6, rowGap: 2, alignItems: "flex-start" },
        h(Stat, { label: t("lineage.source"), value: data.source }),
        h(Stat, { label: t("lineage.file"), value: h(Name, { length: 60 }, data.file) }),
        h(Stat, { label: t("lineage.record"), value: String(data.record ?? "–") }),
        h(Stat, { label: t("lineage.duplicates"), value: f.number(data.duplicates) }),
      ),
      box({ mt: 3 }, h(Label, null, t("lineage.steps")), h(Steps, { steps: data.steps })),
      data.survivor &&
        h(CopyOf, {
          mt: 2,
          dataset,
          of: { ...data.survivor_detail, survivor: data.survivor, rule: data.steps.find((step) => step.verdict === "removed")?.rule },
        }),
      rights.known && !rights.text && box({ mt: 3 }, h(Label, null, t("lineage.text")), h(Empty, { icon: "person" }, rights.whyText)),
      data.text !== null &&
        data.text !== undefined &&
        box(
          { mt: 3 },
          h(Label, null, t("lineage.text")),
          box(
            {
              bg: "bg",
              borderWidth: 1,
              borderColor: "border",
              borderRadius: "md",
              px: 3,
              py: 2,
              fontSize: "sm",
              whiteSpace: "pre-wrap",
              overflowWrap: "anywhere",
              maxHeight: "24rem",
              overflowY: "auto",
              tabIndex: 0,
            },
            data.text,
          ),
        ),
    ),
  );
}
