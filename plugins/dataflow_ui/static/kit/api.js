// Calls of the plugin's own routes. The host may be served under a prefix: <base href> knows it.

export class ApiError extends Error {
  /** `status` is 0 where nothing answered; `code` and `values` tell what the server said, where it has a code. */
  constructor(status, message, { code, values } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.values = values;
  }
}

/** Address of a page of the host, such as `dags/x/runs/y`, whatever prefix it is served under. */
export function hostUrl(path) {
  return new URL(path, document.baseURI).href;
}

/** Address of a route; empty parameters are left out. */
export function apiUrl(path, params = {}) {
  const url = new URL(`dataflow/api/${path}`, document.baseURI);
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, String(value));
  }
  return url.href;
}

async function answer(request) {
  let response;
  try {
    response = await request;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "");
  }
  const body = await response.text();
  let data = null;
  try {
    data = body === "" ? null : JSON.parse(body);
  } catch {
    // A proxy's error page is no JSON; the status says enough.
    if (response.ok) throw new ApiError(response.status, response.statusText);
  }
  if (response.ok) return data;
  const detail = data?.detail;
  throw new ApiError(response.status, typeof detail === "string" ? detail : response.statusText, data ?? {});
}

export function get(path, params, signal) {
  return answer(fetch(apiUrl(path, params), { credentials: "same-origin", signal }));
}

/** The header tells the server that a page of ours asks, which a form on another site cannot set. */
export function post(path, body, signal) {
  return answer(
    fetch(apiUrl(path), {
      method: "POST",
      credentials: "same-origin",
      headers: { "Content-Type": "application/json", "X-DataFlow": "1" },
      body: JSON.stringify(body),
      signal,
    }),
  );
}

/** Sends bytes as they are; the parameters stand in the address. */
export function put(path, params, bytes, signal) {
  return answer(
    fetch(apiUrl(path, params), {
      method: "PUT",
      credentials: "same-origin",
      headers: { "Content-Type": "application/octet-stream", "X-DataFlow": "1" },
      body: bytes,
      signal,
    }),
  );
}
