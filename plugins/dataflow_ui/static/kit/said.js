// What the server says, in the reader's language.

/**
 * The sentence of an answer or an error: ours for its `code`, filled with its `values`, else the server's `message`.
 * States among the values get the words that the page uses for them.
 */
export function serverWords({ code, values = {}, message }, { t, f }) {
  if (!code) return message;
  const filled = Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, typeof value === "number" ? f.number(value) : value]),
  );
  if (values.state) filled.state = t(`run_state.${values.state}`);
  if (values.stands) filled.stands = t(`version_state.${values.stands}`);
  const words = t(`said.${code}`, filled);
  // A server may be newer than the page that one has open.
  return words === `said.${code}` ? message : words;
}
