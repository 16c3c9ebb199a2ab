// A connection that is lost in the middle of a call is a cancel in 2026-07-28, and is none in the handshake revisions: there
// the cell goes on, and whoever asks later gets its result.
import assert from "node:assert/strict";
import { connect, modern, unique, until } from "./clients.mjs";

const session = unique("drop");
const lost = await connect();
const begun = until("begun");
const running = lost.call(
  "execute_python",
  { code: "print('begun', flush=True)\nimport time; time.sleep(3); print('and done')", session_id: session },
  { onprogress: begun.onprogress },
);
running.catch(() => {});
await begun.seen;
await lost.transport.close();
await assert.rejects(running);

const later = await connect();
const kept = await later.call("get_execution", { session_id: session, execution_id: 1, wait_seconds: 30 });
assert.match(kept.text, modern ? /begun[\s\S]*KeyboardInterrupt[\s\S]*cancelled/ : /begun[\s\S]*and done[\s\S]*ok/);
await later.close();
