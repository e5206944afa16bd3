// What turns are looked for; all of it stands in the page's address.
import { box, h, row, UI, useState } from "../kit/h.js";
import { useText } from "../kit/i18n.js";
import { Label } from "../kit/panel.js";
import { Select } from "../kit/select.js";

const STATUSES = ["NEW", "KEPT", "REJECTED", "DUPLICATE"];
const ROLES = ["system", "developer", "user", "assistant", "tool"];
/** Names in the address, and what the server calls them. */
const FIELDS = { file: "file", role: "role", status: "status", rule: "rule", q: "contains", min: "shortest", max: "longest", gone: "deleted" };

/** The parameters of the routes, from what stands in the address. */
export function askedFor(read, dataset) {
  const asked = { dataset };
  for (const [name, theirs] of Object.entries(FIELDS)) asked[theirs] = read(name);
  return asked;
}

function Choice({ label, value, onChange, options }) {
  return box(
    { minW: "8rem" },
    h(Label, null, label),
    h(Select, { label, value, onChange, options, bg: "bg" }),
  );
}

/** A field that is sent when one leaves it or presses Enter, not at each letter. */
function Field({ label, value, onChange, disabled, title, ...props }) {
  const [typed, setTyped] = useState(value);
  const send = () => typed !== value && onChange(typed.trim());
  return box(
    { minW: "6rem" },
    h(Label, null, label),
    h(UI.Input, {
      size: "sm",
      bg: "bg",
      "aria-label": label,
      value: typed,
      disabled,
      title,
      onChange: (event) => setTyped(event.target.value),
      onBlur: send,
      onKeyDown: (event) => {
        // The host listens for keys too; what is typed here is not meant for it.
        event.nativeEvent.stopPropagation();
        if (event.key === "Enter") send();
      },
      ...props,
    }),
  );
}

export function Filter({ files, read, write, rights }) {
  const { t } = useText();
  const set = (name) => (value) => write({ [name]: value, record: "" });
  const all = ["", t("browse.all")];
  return row(
    { alignItems: "flex-end", gap: 3, rowGap: 2 },
    h(Choice, {
      label: t("browse.file"),
      value: read("file"),
      onChange: set("file"),
      options: [all, ...files.map((file) => [file.id, file.path.split("/").pop()])],
    }),
    h(Choice, { label: t("browse.role"), value: read("role"), onChange: set("role"), options: [all, ...ROLES.map((role) => [role, role])] }),
    h(Choice, {
      label: t("browse.status"),
      value: read("status"),
      onChange: set("status"),
      options: [all, ...STATUSES.map((status) => [status, t(`row_state.${status}`)])],
    }),
    h(Choice, {
      label: t("browse.deleted"),
      value: read("gone"),
      onChange: set("gone"),
      options: [
        ["", t("browse.not_deleted")],
        ["true", t("browse.only_deleted")],
      ],
    }),
    h(Field, { key: `rule ${read("rule")}`, label: t("browse.rule"), value: read("rule"), onChange: set("rule") }),
    h(Field, {
      key: `q ${read("q")}`,
      label: t("browse.contains"),
      value: read("q"),
      onChange: set("q"),
      disabled: Boolean(rights.whyText),
      title: rights.whyText,
    }),
    h(Field, { key: `min ${read("min")}`, label: t("browse.shortest"), value: read("min"), onChange: set("min"), type: "number", min: 0, width: "7rem" }),
    h(Field, { key: `max ${read("max")}`, label: t("browse.longest"), value: read("max"), onChange: set("max"), type: "number", min: 0, width: "7rem" }),
  );
}
