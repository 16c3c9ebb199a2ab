// Two clients of one owner, whose request ids are the same, call at once. One aborts its call: the other's goes on, and so
// does its progress.
import assert from "node:assert/strict";
import { connect, unique, until } from "./clients.mjs";

const code = (name) => `import time
print('begun ${name}', flush=True)
for i in range(${name === "b" ? 600 : 20}): time.sleep(0.1)
print('done ${name}')`;

const [a, b] = [await connect(), await connect()];
const messages = { a: [], b: [] };
const run = (c, name, signal) => {
  const begun = until(`begun ${name}`);
  const result = c.call("execute_python", { code: code(name), session_id: unique(`neighbour-${name}`) }, {
    signal,
    onprogress: (p) => {
      messages[name].push(p.message);
      begun.onprogress(p);
    },
  });
  result.catch(() => {});
  return { begun: begun.seen, result };
};
const abort = new AbortController();
const [ours, theirs] = [run(a, "a"), run(b, "b", abort.signal)];
await Promise.all([ours.begun, theirs.begun]);
abort.abort();
await assert.rejects(theirs.result);

const result = await ours.result;
assert.ok(!result.isError && result.text.includes("done a"), result.text);
assert.ok(messages.a.every((m) => !/ b$/m.test(m)) && messages.b.every((m) => !/ a$/m.test(m)), JSON.stringify(messages));
await Promise.all([a.close(), b.close()]);
