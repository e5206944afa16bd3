// Entry of the run's tab: the host loads this file and takes the component from `globalThis`.
import { RunTab } from "./run/page.js";

globalThis.DataFlowRun = RunTab;
globalThis.AirflowPlugin = RunTab;
