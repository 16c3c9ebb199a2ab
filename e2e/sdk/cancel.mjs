// Aborting a call interrupts its cell at once: variables and what it printed are kept, and the next call works.
import assert from "node:assert/strict";
import { connect, unique, until } from "./clients.mjs";

const c = await connect();
const session = unique("cancel");
const begun = until("begun");
const abort = new AbortController();
const running = c.call(
  "execute_python",
  { code: "x = 41; print('begun', flush=True)\nimport time\nfor _ in range(6000): time.sleep(0.1)", session_id: session },
  { signal: abort.signal, onprogress: begun.onprogress },
);
await begun.seen;
const at = Date.now();
abort.abort(new Error("enough"));
await assert.rejects(running);

const next = await c.call("execute_python", { code: "x + 1", session_id: session });
assert.ok(!next.isError && next.text.includes("42"), next.text);
assert.ok(Date.now() - at < 15_000, `the next call took ${Date.now() - at} ms`);
const kept = await c.call("get_execution", { session_id: session, execution_id: 1 });
assert.match(kept.text, /begun[\s\S]*KeyboardInterrupt[\s\S]*cancelled/);
await c.close();
