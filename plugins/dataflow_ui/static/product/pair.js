// Which two versions a comparison begins with.

export const isIncrement = (version) => version.mode === "incremental";

/**
 * The versions to compare where the address names none: what waits against what is current, or that against the
 * one before. Full versions where there are two: a day against the whole says little.
 */
export function defaultPair(all) {
  const full = all.filter((version) => !isIncrement(version));
  const versions = full.length > 1 ? full : all;
  const current = versions.findIndex((version) => version.current);
  const waiting = versions.find((version) => version.state === "WAITING");
  if (waiting && current >= 0) return { a: versions[current].version, b: waiting.version };
  const at = Math.max(0, current);
  const others = [...versions.slice(at + 1), ...versions.slice(0, at)];
  const other = versions.slice(at + 1).find((version) => version.state === "PUBLISHED") ?? others[0];
  return { a: other.version, b: versions[at].version };
}
