// Entry of the page in the navigation: the host loads this file and takes the component from `globalThis`.
import { ProductPage } from "./product/page.js";

globalThis.DataFlow = ProductPage;
globalThis.AirflowPlugin = ProductPage;
