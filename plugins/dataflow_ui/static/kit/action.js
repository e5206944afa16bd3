// Buttons that change something: what one may not do is greyed with the reason, what is grave is asked twice.
import { post } from "./api.js";
import { box, column, h, row, text, UI, useCallback, useContext, useEffect, useId, useRef, useState } from "./h.js";
import { useText } from "./i18n.js";
import { Icon } from "./icons.js";
import { ErrorBox } from "./notes.js";
import { SURFACE } from "./panel.js";
import { Pulse } from "./poll.js";
import { serverWords } from "./said.js";

/**
 * Sends one action: `{busy, error, done, send(body)}`. After it every block asks for new data.
 * `done` is the server's answer; `send` gives it too, or null where it failed.
 */
export function useAction(path) {
  const { pulse } = useContext(Pulse);
  const [state, setState] = useState({ busy: false, error: null, done: null });
  const send = useCallback(
    async (body) => {
      setState({ busy: true, error: null, done: null });
      try {
        const done = await post(path, body);
        setState({ busy: false, error: null, done });
        pulse();
        return done;
      } catch (error) {
        setState({ busy: false, error, done: null });
        return null;
      }
    },
    [path, pulse],
  );
  return { ...state, send };
}

/** One button. `denied` is the reason why it may not be used. */
export function ActionButton({ children, icon, denied, disabled, title, ...props }) {
  return h(
    UI.Button,
    { variant: "outline", size: "sm", disabled: Boolean(denied) || disabled, title: denied || title, ...props },
    icon && h(Icon, { name: icon }),
    children,
  );
}

/**
 * The question that a button opens below itself: what will happen, a note, yes or no.
 * `ask`: `{title, text, confirm, tone, noteLabel, placeholder, noteRequired, extra}`; without `noteLabel` no note
 * is asked for. `onConfirm(note)` sends it.
 */
export function Question({ ask, busy, error, onConfirm, onCancel }) {
  const { t } = useText();
  const [note, setNote] = useState("");
  const field = useRef(null);
  const whole = useRef(null);
  const id = useId();
  useEffect(() => {
    // All of it must be in sight, its buttons too, wherever on the page it opened. Enter sends it from its field.
    field.current?.focus({ preventScroll: true });
    whole.current?.scrollIntoView({ behavior: "smooth", block: "nearest" });
  }, []);
  const lacking = ask.noteRequired && note.trim() === "";
  const submit = (event) => {
    event.preventDefault();
    if (!lacking && !busy) onConfirm(note.trim());
  };
  return h(
    UI.Box,
    {
      as: "form",
      ref: whole,
      scrollMarginBlock: 4,
      onSubmit: submit,
      onKeyDown: (event) => {
        // The host listens for keys too; what is typed here is not meant for it.
        event.nativeEvent.stopPropagation();
        if (event.key === "Escape") onCancel();
      },
      borderWidth: 1,
      borderColor: "border.emphasized",
      borderRadius: "md",
      bg: SURFACE,
      p: 3,
      width: "100%",
      maxW: "48rem",
      role: "group",
      "aria-label": ask.title,
    },
    column(
      { gap: 2 },
      box({ fontWeight: "semibold", fontSize: "sm" }, ask.title),
      ask.text && box({ fontSize: "sm", color: "fg.muted" }, ask.text),
      ask.extra,
      ask.noteLabel &&
        h(
          UI.Box,
          null,
          h("label", { htmlFor: id }, text({ fontSize: "xs", fontWeight: "semibold", color: "fg.muted" }, ask.noteLabel)),
          h(UI.Input, {
            id,
            ref: field,
            size: "sm",
            mt: 1,
            bg: "bg",
            value: note,
            maxLength: 500,
            onChange: (event) => setNote(event.target.value),
            placeholder: ask.placeholder,
            required: ask.noteRequired,
          }),
        ),
      error && h(ErrorBox, { error, compact: true }),
      row(
        {},
        h(
          UI.Button,
          { type: "submit", size: "sm", ref: ask.noteLabel ? undefined : field, colorPalette: ask.tone ?? "brand", loading: busy, disabled: lacking },
          ask.confirm,
        ),
        h(UI.Button, { type: "button", size: "sm", variant: "ghost", onClick: onCancel }, t("action.cancel")),
        lacking && text({ fontSize: "xs", color: "fg.muted" }, t("action.note_needed")),
      ),
    ),
  );
}

/** Why buttons beside it are greyed: a tooltip alone is missed, and a finger has none. */
export function Denied({ why }) {
  if (!why) return null;
  return row({ fontSize: "xs", color: "fg.muted", gap: 1.5, flexWrap: "nowrap" }, h(Icon, { name: "person" }), text({}, why));
}

/** What the server said after an action. */
export function Said({ action, fallback }) {
  const words = useText();
  const { t } = words;
  if (action.error) return h(ErrorBox, { error: action.error, compact: true });
  if (!action.done) return null;
  return row(
    { fontSize: "sm", color: "success.fg", role: "status" },
    h(Icon, { name: "check" }),
    serverWords(action.done, words) || fallback || t("action.done"),
  );
}
