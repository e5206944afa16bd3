// Addresses inside the host.
import { h, Router, UI } from "./h.js";

/** Colons and pluses stand in names of runs as they are: the host marks its tabs by comparing addresses. */
const part = (name) => encodeURIComponent(name).replaceAll("%3A", ":").replaceAll("%2B", "+");

export const runPath = (dagId, dagRunId) => `/dags/${part(dagId)}/runs/${part(dagRunId)}/plugin/dataflow-run`;

/** Where a block of the run's page stands. */
export const LETTERS = "dataflow-letters";

export const dagPath = (dagId) => `/dags/${part(dagId)}`;

export function productPath(values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value) query.set(name, value);
  return `/plugin/dataflow?${query}`;
}

/** A link that the host's router follows without loading the page anew. */
export function PageLink({ to, children, ...props }) {
  return h(UI.Link, { asChild: true, color: "fg.info", ...props }, h(Router.Link, { to }, children));
}

/** A button that leads somewhere. */
export function LinkButton({ to, children, ...props }) {
  return h(UI.Button, { asChild: true, size: "sm", variant: "outline", ...props }, h(Router.Link, { to }, children));
}
