// Brings a file of dialogues here: in parts, and from where it was cut when the same file is chosen again.
import { get, post, put } from "../kit/api.js";
import { box, column, h, row, text, useContext, useEffect, useRef, useState } from "../kit/h.js";
import { Denied } from "../kit/action.js";
import { ProgressBar } from "../kit/bar.js";
import { CliLine } from "../kit/cli.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { ErrorBox } from "../kit/notes.js";
import { Panel } from "../kit/panel.js";
import { Pulse, SLOW_MS, usePoll } from "../kit/poll.js";
import { Select } from "../kit/select.js";
import { Name } from "../kit/words.js";
import { goesOn, sendParts } from "./sending.js";

const FORMATS = ["", "messages", "sharegpt", "instruction"];
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function Format({ value, onChange, disabled }) {
  const { t } = useText();
  return h(Select, {
    label: t("upload.format"),
    value,
    onChange,
    options: FORMATS.map((format) => [format, format || t("upload.told")]),
    bg: "bg",
    width: "14rem",
    disabled,
  });
}

/** What is to be done with what has arrived: an upload is a file, its dialogues come with an import. */
function Arrived({ done }) {
  const { t } = useText();
  return column(
    { gap: 1.5, role: "status" },
    row(
      { fontSize: "sm", color: "success.fg" },
      h(Icon, { name: "check" }),
      t(done.there ? "upload.there" : "upload.arrived", { name: done.name }),
    ),
    !done.there && row({ fontSize: "sm" }, text({}, t("upload.next")), h(CliLine, { command: `upload:${done.upload}` })),
    done.task && h(CliLine, { command: `dataflow samples resume ${done.task}` }),
  );
}

export function Upload({ dataset, rights }) {
  const { t, f } = useText();
  const { pulse } = useContext(Pulse);
  const [format, setFormat] = useState("");
  const [state, setState] = useState({ busy: false, name: "", size: 0, sent: 0, error: null, done: null });
  const gone = useRef(false);
  const open = usePoll("samples/uploads", { dataset }, { every: SLOW_MS });
  useEffect(() => {
    gone.current = false;
    return () => {
      gone.current = true;
    };
  }, []);

  const send = async (file) => {
    const told = (change) => gone.current || setState((old) => ({ ...old, ...change }));
    told({ busy: true, name: file.name, size: file.size, sent: 0, error: null, done: null });
    try {
      const known = goesOn(file, open.data?.uploads ?? []);
      const begun = known ?? (await post("samples/uploads", { dataset, name: file.name, size: file.size }));
      const upload = begun.upload_id;
      const received = await sendParts(file, begun.received, {
        put: (offset, bytes) => put("samples/upload", { dataset, upload, offset }, bytes),
        where: () => get("samples/upload", { dataset, upload }),
        told: (sent) => told({ sent }),
        wait,
        stopped: () => gone.current,
      });
      if (received < file.size) return;
      const found = await post("samples/upload/finish", { dataset, upload, ...(format ? { format } : {}) });
      told({ busy: false, done: { ...found, upload, name: file.name } });
    } catch (error) {
      told({ busy: false, error });
    }
    pulse();
  };

  const cut = (open.data?.uploads ?? []).filter((one) => one.received < one.size);
  return h(
    Panel,
    { title: t("upload.title"), note: t("upload.note") },
    column(
      { gap: 2 },
      row(
        { rowGap: 2 },
        h(Format, { value: format, onChange: setFormat, disabled: state.busy }),
        h("input", {
          type: "file",
          "aria-label": t("upload.choose"),
          disabled: state.busy || Boolean(rights.whyAct),
          onChange: (event) => {
            const [file] = event.target.files;
            event.target.value = "";
            if (file) send(file);
          },
        }),
      ),
      rights.known && h(Denied, { why: rights.whyAct }),
      state.busy &&
        box(
          {},
          text({ fontSize: "sm" }, t("upload.sending", { name: state.name, sent: f.compact(state.sent), size: f.compact(state.size) })),
          h(ProgressBar, { value: state.size ? state.sent / state.size : 0, label: state.name }),
        ),
      state.error && h(ErrorBox, { error: state.error, compact: true }),
      state.done && h(Arrived, { done: state.done }),
      !state.busy &&
        cut.length > 0 &&
        box(
          { fontSize: "xs", color: "fg.muted" },
          text({}, `${t("upload.cut")} `),
          ...cut.map((one) => h(Name, { key: one.upload_id, mr: 2 }, `${one.name} (${f.progress(one.received / one.size)})`)),
        ),
    ),
  );
}
