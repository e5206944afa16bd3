// The tab of one run, top to bottom: how it goes, what may be done, what it removed, where it is.
import { h, useMemo } from "../kit/h.js";
import { useText } from "../kit/i18n.js";
import { Empty, ErrorBox, Loading, PageError } from "../kit/notes.js";
import { Page, Panel } from "../kit/panel.js";
import { FAST_MS, Pulse, SLOW_MS, usePoll, usePulse } from "../kit/poll.js";
import { useQuery } from "../kit/query.js";
import { useRights } from "../kit/rights.js";
import { useSteady } from "../kit/steady.js";
import { isLive } from "../kit/tones.js";
import { SAMPLES, SamplesRun } from "../samples/run.js";
import { Control } from "./control.js";
import { Funnel, LayerFilter } from "./funnel.js";
import { Letters } from "./letters.js";
import { NotStarted } from "./not_started.js";
import { Parameters } from "./parameters.js";
import { Removed } from "./removed.js";
import { Report } from "./report.js";
import { Sentence } from "./sentence.js";
import { Where } from "./where.js";

const OURS = /^(.+)__(full|incremental)$/;

export function RunTab(props) {
  const pulse = usePulse();
  const steady = useSteady("run");
  const of = props.dagId === SAMPLES ? SamplesRun : Body;
  return h(
    Pulse.Provider,
    { value: pulse },
    h(Page, { name: "run" }, steady ? h(of, props) : h(Panel, null, h(Loading, { lines: 6 }))),
  );
}

function Body({ dagId, runId }) {
  const { t } = useText();
  const run = `airflow-${dagId}-${runId}`;
  const dataset = OURS.exec(dagId)?.[1] ?? "";
  const rights = useRights(dataset);
  const [read, write] = useQuery();
  const layer = read("layer");
  const poll = usePoll(dataset ? "run" : null, { run }, {
    // A run that is only queued yet has no row: look often, it begins any moment.
    every: (data) => (data === null || isLive(data) || !data.complete ? FAST_MS : SLOW_MS),
  });
  const every = isLive(poll.data) ? FAST_MS : SLOW_MS;
  const setLayer = useMemo(() => (name) => write({ layer: name, rule: "" }, { replace: true }), [write]);

  if (!dataset) return h(Panel, null, h(Empty, { title: t("run.foreign") }, t("run.foreign_next")));
  if (poll.data === null) {
    if (poll.error?.status === 404) {
      return h(Panel, null, h(NotStarted, { dagId, runId, error: poll.error }));
    }
    return h(Panel, null, poll.error ? h(ErrorBox, poll) : h(Loading, { lines: 6 }));
  }
  const block = { run: poll.data, layer, every, rights };
  return [
    h(PageError, { key: "error", ...poll }),
    h(Sentence, { key: "sentence", ...block }),
    h(Funnel, { key: "funnel", ...block, onLayer: setLayer }),
    h(Control, { key: "control", ...block }),
    layer && h(LayerFilter, { key: "filter", layer, onClear: () => setLayer("") }),
    h(Removed, { key: "removed", ...block }),
    h(Where, { key: "where", ...block }),
    h(Letters, { key: "letters", ...block }),
    h(Parameters, { key: "parameters", ...block }),
    h(Report, { key: "report", ...block }),
  ];
}
