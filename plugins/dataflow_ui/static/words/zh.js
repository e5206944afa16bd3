// All words of one language.
import product from "./zh/product.js";
import run from "./zh/run.js";
import samples from "./zh/samples.js";
import shared from "./zh/shared.js";

export default { ...shared, ...run, ...product, ...samples };
