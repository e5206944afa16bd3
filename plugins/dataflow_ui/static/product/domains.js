// Which colour a domain has, and the parts of a version's bar.
import { PARTS } from "../kit/tones.js";

const REST = "…";

/** One palette per domain over all versions, the largest first; what exceeds the palettes is one rest. */
export function domainTones(versions) {
  const totals = new Map();
  for (const version of versions) {
    for (const part of version.domains) totals.set(part.domain, (totals.get(part.domain) ?? 0) + part.tokens);
  }
  const names = [...totals.entries()].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).map(([name]) => name);
  const own = names.length > PARTS.length ? names.slice(0, PARTS.length - 1) : names;
  return new Map(own.map((name, index) => [name, PARTS[index]]));
}

/** A version's domains as parts of its bar, in the same order in each version. */
export function domainParts(version, tones, describe) {
  const parts = [];
  let rest = 0;
  const byName = new Map(version.domains.map((part) => [part.domain, part]));
  for (const [name, tone] of tones) {
    const part = byName.get(name);
    if (part) parts.push({ name, tone, value: part.tokens, title: describe(part) });
  }
  for (const part of version.domains) if (!tones.has(part.domain)) rest += part.tokens;
  if (rest > 0) parts.push({ name: REST, tone: "gray", value: rest, title: REST });
  return parts;
}
