// input() in a cell asks the user by a form, in either era, and the cell goes on with the answer: it never runs twice. A user
// who does not answer, a password, and a client that cannot ask end in an error that says what to do.
import assert from "node:assert/strict";
import { connect, modern, once, target, unique, until } from "./clients.mjs";

const session = unique("input");
const asked = [];
const told = once(); // what was printed before the first prompt
// Of a progress and the result behind it that come in one read of a pipe, this SDK passes on the result alone.
const mayMiss = modern && target.command;
const able = await connect({
  elicit: async ({ message, requestedSchema }) => {
    asked.push(message);
    assert.deepEqual(Object.keys(requestedSchema.properties), ["value"]);
    if (message.endsWith("go away?")) return { action: "decline" };
    if (message.endsWith("name?") && !mayMiss) await told.promise;
    return { action: "accept", content: { value: message.endsWith("name?") ? "ada" : "36" } };
  },
});
const run = (code, options) => able.call("execute_python", { code, session_id: session }, options);

const before = until("before");
before.seen.then(told.resolve);
const both = await run(
  "runs = globals().get('runs', 0) + 1\nprint('before')\nname = input('name?')\nprint('hello', name)\nage = int(input('age?'))\nprint(age + 1, 'runs:', runs)",
  { onprogress: before.onprogress },
);
assert.match(both.text, /^before\nhello ada\n37 runs: 1\n\[session .* cell 1 · ok/, both.text);
assert.deepEqual(asked, [`Code in session ${session} asks for input: name?`, `Code in session ${session} asks for input: age?`]);

const no = await run("x = 1\ninput('go away?')");
assert.ok(no.isError, no.text);
assert.match(no.text, /EOFError: the user declined to answer: put the value into the code/);
assert.equal(asked.length, 3);

const secret = await run("import getpass\ngetpass.getpass()");
assert.ok(secret.isError, secret.text);
assert.match(secret.text, /EOFError: secrets are not asked for here/);

const caught = await run("try:\n    input('go away?')\nexcept EOFError:\n    print('no input, x is', x)");
assert.match(caught.text, /^no input, x is 1\n/);
assert.equal(asked.length, 4);

// Nobody waits for a cell that is only started, so nobody is asked.
await able.call("execute_python", { code: "input('anybody?')", session_id: session, wait_seconds: 0 });
const alone = await able.call("get_execution", { session_id: session, execution_id: 5 });
assert.match(alone.text, /put the value into the code/);
assert.equal(asked.length, 4);
await able.close();

const unable = await connect();
for (const code of ["input('anybody?')", "import getpass; getpass.getpass()"]) {
  const never = await unable.call("execute_python", { code, session_id: unique("unable") });
  assert.ok(never.isError && never.text.includes("StdinNotImplementedError"), never.text);
  assert.match(never.text, code.startsWith("input") ? /put the value into the code/ : /read the secret from a file/);
}
await unable.close();
