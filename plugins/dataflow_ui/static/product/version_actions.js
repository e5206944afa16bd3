// Decisions about a version, each with a note that others read later.
import { box, column, h, row, text, UI, useState } from "../kit/h.js";
import { apiUrl } from "../kit/api.js";
import { ActionButton, Denied, Question, useAction } from "../kit/action.js";
import { CliLine } from "../kit/cli.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { LinkButton, productPath } from "../kit/links.js";

/** Who has used the current version already: they hold data that is no longer current afterwards. */
function Affected({ consumers }) {
  const { t, f } = useText();
  if (consumers.length === 0) return box({ fontSize: "sm" }, t("versions.rollback_nobody"));
  return box(
    { fontSize: "sm" },
    t("versions.rollback_consumers"),
    box(
      { as: "ul", pl: 5, listStyleType: "disc" },
      ...consumers.map((consumer) =>
        box(
          { as: "li", key: `${consumer.dag_id} ${consumer.run_id}` },
          text({ fontWeight: "medium" }, consumer.dag_id),
          text({ color: "fg.muted", fontSize: "xs" }, ` ${f.time(consumer.at)}`),
        ),
      ),
    ),
  );
}

/** Who went back from a version, and why. */
export function Left({ left }) {
  const { t, f } = useText();
  const values = { at: f.time(left.at), who: left.who || "–", note: left.note };
  return row(
    { fontSize: "sm", alignItems: "flex-start", flexWrap: "nowrap", colorPalette: "warning" },
    h(Icon, { name: "undo", mt: 0.5, color: "colorPalette.fg" }),
    box({ minW: 0, overflowWrap: "anywhere" }, t(left.note ? "versions.left" : "versions.left_silent", values)),
  );
}

export function VersionActions({ version, before, dataset, rights, consumers, onDone }) {
  const { t } = useText();
  const [asking, setAsking] = useState("");
  const actions = {
    approve: useAction("versions/approve"),
    reject: useAction("versions/reject"),
    rollback: useAction("versions/rollback"),
  };
  const waiting = version.state === "WAITING";
  // What was rejected may be approved after all: nothing of it is gone before the clean-up.
  const mayApprove = waiting || version.state === "REJECTED";
  const increment = version.mode === "incremental";
  // An increment is a part: only a full version can be what everybody reads.
  const mayRollBack = version.state === "PUBLISHED" && !version.current && !increment;
  // From the current version the way back is the one before it; from an older one it is that one.
  const target = mayRollBack ? version : version.current ? before : undefined;
  // Somebody left it for a reason: who goes back to it is told.
  const warned = target?.left;
  const mayRead = rights.known && rights.text;
  const send = (name) => async (note) => {
    const about = name === "rollback" ? target : version;
    const done = await actions[name].send({ dataset, version: about.version, note });
    if (!done) return;
    setAsking("");
    onDone(done);
  };
  const questions = {
    approve: { text: t(increment ? "versions.approve_text_increment" : "versions.approve_text"), tone: "success", noteRequired: true },
    reject: { text: t("versions.reject_text"), tone: "danger", noteRequired: true },
    rollback: { text: t("versions.rollback_text"), tone: "warning", noteRequired: true, extra: [warned && h(Left, { key: "left", left: warned }), h(Affected, { key: "affected", consumers })] },
  };
  const opener = (name, icon, props, label = `versions.${name}`) =>
    h(
      ActionButton,
      {
        key: name,
        icon,
        denied: rights.whyAct,
        "aria-expanded": asking === name,
        onClick: () => setAsking(asking === name ? "" : name),
        ...props,
      },
      t(label),
    );
  const command = mayApprove ? version.cli?.approve : target ? target.cli?.rollback : "";
  return column(
    { gap: 2 },
    row(
      {},
      mayApprove && opener("approve", "check", waiting ? { variant: "solid", colorPalette: "success" } : {}),
      waiting && opener("reject", "cross"),
      target && opener("rollback", "undo", {}, mayRollBack ? "versions.rollback" : "versions.rollback_before"),
      before &&
        h(
          LinkButton,
          { to: productPath({ view: "compare", dataset, a: before.version, b: version.version }) },
          t("versions.compare"),
        ),
      version.report &&
        !mayRead &&
        h(ActionButton, { icon: "open", disabled: true, title: rights.known ? rights.whyText : undefined }, t("report.title")),
      version.report &&
        mayRead &&
        h(
          UI.Button,
          { asChild: true, size: "sm", variant: "outline" },
          h(
            "a",
            {
              href: apiUrl("versions/report", { dataset, version: version.version }),
              target: "_blank",
              rel: "noreferrer",
            },
            h(Icon, { name: "open" }),
            t("report.title"),
          ),
        ),
      command && h(CliLine, { command, maxW: "26rem" }),
    ),
    rights.known && (mayApprove || target) && h(Denied, { why: rights.whyAct }),
    rights.known && version.report && h(Denied, { why: rights.whyText }),
    asking &&
      h(Question, {
        key: asking,
        ask: {
          ...questions[asking],
          title: t(`versions.${asking}_title`, { version: (asking === "rollback" ? target : version).version }),
          confirm: t(`versions.${asking}_now`),
          noteLabel: t("action.note"),
          placeholder: t(`versions.${asking}_placeholder`),
        },
        busy: actions[asking].busy,
        error: actions[asking].error,
        onConfirm: send(asking),
        onCancel: () => setAsking(""),
      }),
  );
}
