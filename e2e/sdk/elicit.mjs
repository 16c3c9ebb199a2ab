// A tool asks the user by a form and goes on with the answer, in either era with the same tool. One who cannot be asked is not.
import assert from "node:assert/strict";
import { connect } from "./clients.mjs";

const asked = [];
const able = await connect({
  elicit: (form) => {
    asked.push(form);
    return form.message === "go away" ? { action: "decline" } : { action: "accept", content: { username: "ada", email: "ada@example.com" } };
  },
});
const yes = await able.call("test_elicitation", { message: "who are you?" });
assert.match(yes.text, /action=accept.*ada@example\.com/);
assert.equal(asked.length, 1);
assert.equal(asked[0].message, "who are you?");
assert.deepEqual(asked[0].requestedSchema.required, ["username", "email"]);
const no = await able.call("test_elicitation", { message: "go away" });
assert.match(no.text, /action=decline/);

// Many at once: each answer finds its own question.
const many = await Promise.all(Array.from({ length: 8 }, () => able.call("test_elicitation", { message: "again" })));
for (const one of many) assert.match(one.text, /action=accept/);
assert.equal(asked.length, 10);
await able.close();

const unable = await connect();
const never = await unable.call("test_elicitation", { message: "anybody?" });
assert.ok(never.isError && never.text.includes("cannot ask"), never.text);
await unable.close();
