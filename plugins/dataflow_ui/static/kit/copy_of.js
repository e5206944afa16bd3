// What a removed document is a copy of: the file that is kept, its id, and how alike the two are.
import { h, row, text } from "./h.js";
import { useText } from "./i18n.js";
import { PageLink, productPath } from "./links.js";
import { Name } from "./words.js";

/** How alike two texts are, and from where on that is enough. */
export function alikeWords(similarity, enough, { t, f }) {
  if (typeof similarity !== "number") return "";
  const values = { share: f.share(similarity), enough: f.share(enough) };
  return t(typeof enough === "number" ? "copy.alike_enough" : "copy.alike", values);
}

/** `of`: `{rule, survivor, file, similarity, enough}`; of an exact copy there is nothing to say but that. */
export function CopyOf({ of, dataset, ...props }) {
  const words = useText();
  const { t } = words;
  const near = of.rule !== "exact";
  const alike = near ? alikeWords(of.similarity, of.enough, words) : "";
  return row(
    { gap: 1.5, rowGap: 0, fontSize: "sm", alignItems: "baseline", ...props },
    text({}, t(near ? "copy.near" : "copy.exact")),
    h(
      PageLink,
      { to: productPath({ view: "search", dataset, q: of.survivor, by: "id" }) },
      h(Name, { length: 60, mono: !of.file }, of.file || of.survivor),
    ),
    alike && text({ color: "fg.muted" }, `(${alike})`),
    of.file && text({ color: "fg.muted", fontFamily: "mono", fontSize: "xs" }, of.survivor),
  );
}
