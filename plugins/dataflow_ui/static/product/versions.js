// Versions as a time line: how much, of what, what moved, who decided.
import { box, column, h, useMemo, useState } from "../kit/h.js";
import { Said } from "../kit/action.js";
import { Legend } from "../kit/bar.js";
import { useText } from "../kit/i18n.js";
import { Icon } from "../kit/icons.js";
import { Empty, Loaded } from "../kit/notes.js";
import { Panel } from "../kit/panel.js";
import { usePoll } from "../kit/poll.js";
import { useQuery } from "../kit/query.js";
import { useRights } from "../kit/rights.js";
import { domainTones } from "./domains.js";
import { History } from "./history.js";
import { VersionCard } from "./version_card.js";

export function Versions({ dataset }) {
  const { t, f } = useText();
  const rights = useRights(dataset);
  const [read, write] = useQuery();
  const poll = usePoll("versions", { dataset });
  const versions = useMemo(() => poll.data?.versions ?? [], [poll.data]);
  const tones = useMemo(() => domainTones(versions), [versions]);
  const most = Math.max(0, ...versions.map((version) => version.tokens ?? 0));
  // What the server said outlives the card: a version that is current no longer closes.
  const [said, setSaid] = useState(null);
  const asked = read("version");
  // Unless one is asked for: what waits for somebody, and what is current.
  const isOpen = (version) => (asked ? version.version === asked : version.state === "WAITING" || version.current);
  const consumers = versions.find((version) => version.current)?.consumers ?? [];
  return h(Loaded, { poll, lines: 8 }, (data) =>
    data.versions.length === 0
      ? h(Panel, null, h(Empty, { title: t("versions.none"), icon: "clock" }, t("versions.none_next", { dataset })))
      : column(
          { gap: 3 },
          said && h(Said, { action: { done: said } }),
          h(
            Panel,
            {
              title: t("versions.title"),
              note: t("versions.note"),
              flush: true,
              aside: h(Legend, { parts: [...tones].map(([name, tone]) => ({ name, tone })) }),
            },
            ...data.versions.map((version) =>
              h(VersionCard, {
                key: version.version,
                version,
                // What was decided tells which came before; one beyond the list has no more than a name here.
                before: version.before
                  ? (data.versions.find((other) => other.version === version.before) ?? { version: version.before })
                  : undefined,
                dataset,
                tones,
                most,
                rights,
                consumers,
                onDone: setSaid,
                open: isOpen(version),
                asked: asked === version.version,
                onToggle: () => write({ version: isOpen(version) ? "none" : version.version }, { replace: true }),
              }),
            ),
          ),
          h(History, { events: data.events }),
          box(
            { fontSize: "xs", color: "fg.muted", px: 1 },
            h(Icon, { name: "clock", display: "inline", mr: 1, verticalAlign: "-0.125em" }),
            t("versions.count", { count: f.number(data.total ?? data.versions.length) }),
          ),
        ),
  );
}
