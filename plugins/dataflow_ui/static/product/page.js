import { h } from "../kit/h.js";
import { Page } from "../kit/panel.js";
export function ProductPage() { return h(Page, { name: "product" }, "…"); }
