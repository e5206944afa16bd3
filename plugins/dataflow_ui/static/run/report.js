// The run's report: a link, and the whole of it in place when asked for.
import { box, h, row, UI, useState } from "../kit/h.js";
import { apiUrl } from "../kit/api.js";
import { CliLine } from "../kit/cli.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { Empty } from "../kit/notes.js";
import { Panel } from "../kit/panel.js";

export function Report({ run, rights }) {
  const { t } = useText();
  const [open, setOpen] = useState(false);
  const href = apiUrl("run/report", { run: run.run });
  const may = rights.known && rights.text;
  let inside;
  if (!run.report) inside = h(Empty, { icon: "clock" }, t("report.not_yet"));
  else if (!may) inside = h(Empty, { icon: "person" }, rights.whyText);
  else if (open) {
    // Scripts of the report run in a world of their own: without our origin they reach nothing of the host.
    inside = h("iframe", {
      src: href,
      title: t("report.title"),
      sandbox: "allow-scripts allow-popups",
      style: { width: "100%", height: "80vh", border: 0, display: "block", background: "white" },
    });
  }
  return h(
    Panel,
    {
      title: t("report.title"),
      flush: open && may && Boolean(run.report),
      aside: row(
        {},
        run.report &&
          may &&
          h(
            UI.Button,
            { size: "xs", variant: "outline", "aria-expanded": open, onClick: () => setOpen(!open) },
            h(Icon, { name: open ? "up" : "down" }),
            t(open ? "report.close" : "report.show"),
          ),
        run.report &&
          may &&
          h(
            UI.Button,
            { asChild: true, size: "xs", variant: "outline" },
            h("a", { href, target: "_blank", rel: "noreferrer" }, h(Icon, { name: "open" }), t("report.open")),
          ),
      ),
    },
    inside ?? box({}, h(CliLine, { command: run.cli?.report })),
  );
}
