// The page in the navigation: one section at a time, each with an address of its own.
import { box, h, Router, row, UI, useMemo } from "../kit/h.js";
import { useText } from "../kit/i18n.js";
import { productPath } from "../kit/links.js";
import { Empty, Loading, PageError } from "../kit/notes.js";
import { Page, Panel } from "../kit/panel.js";
import { FAST_MS, Pulse, SLOW_MS, untilComplete, usePoll, usePulse } from "../kit/poll.js";
import { useQuery } from "../kit/query.js";
import { Select } from "../kit/select.js";
import { useSteady } from "../kit/steady.js";
import { Samples } from "../samples/page.js";
import { Compare } from "./compare.js";
import { Rules } from "./rules.js";
import { Search } from "./search.js";
import { Today } from "./today.js";
import { Versions } from "./versions.js";

/** Sections: the component, whether it is about one data set, whether it has data sets of its own. */
const SECTIONS = {
  today: { component: Today, one: false },
  search: { component: Search, one: false },
  versions: { component: Versions, one: true },
  compare: { component: Compare, one: true },
  rules: { component: Rules, one: true },
  samples: { component: Samples, one: false, own: true },
};

export function ProductPage() {
  const pulse = usePulse();
  const steady = useSteady("product");
  return h(
    Pulse.Provider,
    { value: pulse },
    h(Page, { name: "product" }, steady ? h(Body) : h(Panel, null, h(Loading, { lines: 5 }))),
  );
}

function Tabs({ view, dataset }) {
  const { t } = useText();
  return h(
    UI.Flex,
    { as: "nav", "aria-label": t("nav.label"), gap: 1 },
    ...Object.keys(SECTIONS).map((name) => {
      const here = name === view;
      return h(
        UI.Link,
        {
          key: name,
          asChild: true,
          px: 3,
          py: 2,
          fontWeight: "bold",
          fontSize: "sm",
          color: here ? "fg" : "fg.muted",
          borderBottomWidth: 3,
          borderColor: here ? "info.solid" : "transparent",
          borderRadius: 0,
          mb: "-1px",
          textDecoration: "none",
          _hover: { color: "fg", textDecoration: "none" },
        },
        h(
          Router.Link,
          { to: productPath({ view: name, dataset }), "aria-current": here ? "page" : undefined },
          t(`nav.${name}`),
        ),
      );
    }),
  );
}

function DatasetChoice({ datasets, value, onChange, all }) {
  const { t } = useText();
  const named = datasets.map((entry) => [entry.dataset, entry.dataset]);
  return h(Select, {
    label: t("nav.dataset"),
    value,
    onChange,
    options: all ? [["", t("nav.all_datasets")], ...named] : named,
    width: "18rem",
    maxW: "100%",
  });
}

function Body() {
  const { t } = useText();
  const [read, write] = useQuery();
  const view = SECTIONS[read("view")] ? read("view") : "today";
  const section = SECTIONS[view];
  const today = usePoll("today", {}, {
    every: (data) => untilComplete(data?.datasets.some((entry) => entry.live.length > 0) ? FAST_MS : SLOW_MS)(data),
  });
  const datasets = useMemo(() => today.data?.datasets ?? [], [today.data]);
  const asked = read("dataset");
  const dataset = asked || (section.one ? datasets[0]?.dataset ?? "" : "");
  const choose = (name) => write({ dataset: name, version: "", a: "", b: "" });
  return [
    row(
      { key: "head", borderBottomWidth: 1, borderColor: "border", rowGap: 2 },
      h(Tabs, { view, dataset: asked }),
      box({ flex: 1 }),
      view !== "today" &&
        !section.own &&
        datasets.length > 0 &&
        box({ pb: 1 }, h(DatasetChoice, { datasets, value: dataset, onChange: choose, all: !section.one })),
    ),
    section.own && h(section.component, { key: view }),
    h(PageError, { key: "error", ...today }),
    !section.own && today.data === null && !today.error && h(Panel, { key: "loading" }, h(Loading, { lines: 5 })),
    !section.own &&
      today.data !== null &&
      (datasets.length === 0
        ? h(Panel, { key: "empty" }, h(Empty, { title: t("today.none"), icon: "open" }, t("today.none_next")))
        : h(section.component, { key: `${view} ${dataset}`, datasets, dataset })),
  ];
}
