// A client that knows a server's address alone signs its user in: it is told where to ask, asks with PKCE for the server's
// own resource and scopes, and calls with the token. The user is played by following the provider's pages.
import assert from "node:assert/strict";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as HTTP1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { Client as Client2, StreamableHTTPClientTransport as HTTP2 } from "@modelcontextprotocol/client";

const target = JSON.parse(process.argv[2]);
const modern = target.sdk === "sdk2";
const redirectUrl = "http://localhost/auth/callback";

// signIn answers the provider's pages until it sends its user back to the client, and returns the address it sends to.
async function signIn(start) {
  let at = new URL(start);
  let form;
  for (let steps = 0; steps < 10; steps++) {
    const response = await fetch(at, { method: form ? "POST" : "GET", body: form, redirect: "manual" });
    if (response.status === 200) {
      assert.match(await response.text(), /password/i);
      form = new URLSearchParams({ username: target.username, password: target.password, id: at.searchParams.get("authRequestID") });
      continue;
    }
    assert.equal(response.status, 302, await response.text());
    form = undefined;
    at = new URL(response.headers.get("location"), at);
    if (at.href.startsWith(redirectUrl)) return at;
  }
  assert.fail("the provider's pages have no end");
}

const kept = {};
const asked = [];
const provider = {
  redirectUrl,
  clientMetadata: { client_name: "cellblock-e2e", redirect_uris: [redirectUrl], token_endpoint_auth_method: "none" },
  clientInformation: () => ({ client_id: target.client }),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  redirectToAuthorization: async (url) => {
    asked.push(url.searchParams);
    kept.back = await signIn(url);
  },
};

function open() {
  const url = new URL(target.url);
  return modern ? new HTTP2(url, { authProvider: provider }) : new HTTP1(url, { authProvider: provider });
}

function newClient() {
  const info = { name: "cellblock-e2e", version: "1" };
  return modern ? new Client2(info, { versionNegotiation: { mode: { pin: "2026-07-28" } } }) : new Client1(info);
}

const first = open();
await assert.rejects(newClient().connect(first), (error) => /unauthorized/i.test(error.name + error.message));
const [request] = asked;
assert.equal(request.get("code_challenge_method"), "S256");
assert.equal(request.get("resource"), target.url);
assert.ok(request.get("scope").split(" ").includes("python:execute"), request.get("scope"));
await first.finishAuth(modern ? kept.back.searchParams : kept.back.searchParams.get("code"));

const client = newClient();
await client.connect(open());
const names = (await client.listTools()).tools.map((tool) => tool.name);
if (target.runs) {
  for (const name of target.tools) assert.ok(names.includes(name), `${name} is not in ${names}`);
} else {
  assert.deepEqual(names.sort(), target.tools);
}
const call = { name: "execute_python", arguments: { code: "print(6*7)" } };
const run = () => (modern ? client.callTool(call, { timeout: 60_000 }) : client.callTool(call, CallToolResultSchema, { timeout: 60_000 }));
if (target.runs) {
  const result = await run();
  assert.match(result.content[0].text, /42/);
} else {
  // The client asks for more, and gets no more; then it gives up.
  await assert.rejects(run(), (error) => /403|insufficient|scope|unauthorized/i.test(error.name + error.message));
  assert.ok(asked.length > 1, "it did not ask for more");
  assert.ok(asked.at(-1).get("scope").split(" ").includes("python:execute"), asked.at(-1).get("scope"));
}
await client.close();
