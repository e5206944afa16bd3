// Sends a file in parts. Where a part was cut off, the server is asked how far it is, and the next one begins there.

/** Bytes of a part: small enough for a slow line, and for a proxy in between. */
export const PART = 4 * 1024 * 1024;
/** Waits before another try, in milliseconds; after the last of them it is given up. */
export const WAITS = [500, 1000, 2000, 4000, 8000, 16000];

/** What another try can help: no answer, a server that restarts, an offset that has moved. */
const passes = (error) => error.status === 0 || error.status === 409 || error.status === 429 || error.status >= 500;

/**
 * Sends `file` (with `size` and `slice`) from byte `received` on; gives how many bytes are there.
 *
 * `put(offset, bytes)` sends a part, `where()` asks for the bytes that are durable; both give `{received}`.
 * `told(received)` hears how far it is, `wait(ms)` waits, `stopped()` says whether nobody wants it any more.
 */
export async function sendParts(file, received, { put, where, told, wait, stopped }) {
  let offset = received;
  let failed = 0;
  while (offset < file.size && !stopped()) {
    try {
      // After a fault the part may have arrived, or not: only the server knows.
      if (failed > 0) offset = (await where()).received;
      if (offset < file.size) offset = (await put(offset, file.slice(offset, Math.min(file.size, offset + PART)))).received;
      failed = 0;
      told(offset);
    } catch (error) {
      if (!passes(error) || failed >= WAITS.length) throw error;
      await wait(WAITS[failed]);
      failed += 1;
    }
  }
  return offset;
}

/**
 * The upload that the choice of `file` goes on with, if any: of that name and size, and begun after the file was last
 * written. One that was written anew has other bytes, and the first ones of the old are there already.
 */
export const goesOn = (file, uploads) =>
  uploads.find(
    (one) => one.name === file.name && one.size === file.size && file.lastModified <= one.created_at * 1000,
  );
