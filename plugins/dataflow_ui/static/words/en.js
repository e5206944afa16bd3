// All words of one language.
import product from "./en/product.js";
import run from "./en/run.js";
import samples from "./en/samples.js";
import shared from "./en/shared.js";

export default { ...shared, ...run, ...product, ...samples };
