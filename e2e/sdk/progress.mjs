// What a cell prints arrives while it runs: in order, all of it, each once, before the result.
import assert from "node:assert/strict";
import { connect, unique } from "./clients.mjs";

const c = await connect();
const session = unique("progress");
const ticks = 10;
const code = `import time
for i in range(${ticks}):
    print(f"<tick {i}>", flush=True)
    time.sleep(0.25)`;
await c.call("execute_python", { code: "1", session_id: session }); // the kernel is up

const notes = [];
const result = await c.call("execute_python", { code, session_id: session }, {
  onprogress: (p) => notes.push({ at: Date.now(), progress: p.progress, message: p.message }),
});
const ended = Date.now();

assert.ok(!result.isError, result.text);
for (let i = 1; i < notes.length; i++) assert.ok(notes[i].progress > notes[i - 1].progress, `progress goes back: ${JSON.stringify(notes)}`);
const told = notes.map((n) => n.message).join("\n").match(/<tick \d+>/g) ?? [];
const all = Array.from({ length: ticks }, (_, i) => `<tick ${i}>`);
assert.deepEqual(told, all);
assert.deepEqual(result.text.match(/<tick \d+>/g), all);
const first = notes.find((n) => n.message.includes("<tick 0>"));
assert.ok(ended - first.at > 1500, `the first tick came ${ended - first.at} ms before the end`);
await c.close();
