// The MCP clients of others, by one interface: `sdk1` speaks the handshake revisions, `sdk2` is pinned to 2026-07-28.
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as HTTP1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { CallToolResultSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { Client as Client2, StreamableHTTPClientTransport as HTTP2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio2 } from "@modelcontextprotocol/client/stdio";

// Where to connect, and as what: {sdk, url, token} or {sdk, command, args, env}.
export const target = JSON.parse(process.argv[2]);
export const modern = target.sdk === "sdk2";

// connect returns a connected client. With elicit, a function from a form's params to an answer, it can ask its user.
export async function connect({ elicit } = {}) {
  const info = { name: "cellblock-e2e", version: "1" };
  const options = { capabilities: elicit ? { elicitation: {} } : {} };
  const client = modern
    ? new Client2(info, { ...options, versionNegotiation: { mode: { pin: "2026-07-28" } } })
    : new Client1(info, options);
  if (elicit) client.setRequestHandler(modern ? "elicitation/create" : ElicitRequestSchema, (request) => elicit(request.params));
  const transport = open();
  await client.connect(transport);
  return {
    client,
    transport,
    revision: transport.protocolVersion,
    call: async (name, args, options = {}) =>
      read(await (modern
        ? client.callTool({ name, arguments: args }, { timeout: 60_000, ...options })
        : client.callTool({ name, arguments: args }, CallToolResultSchema, { timeout: 60_000, ...options }))),
    close: () => client.close(),
  };
}

function open() {
  if (target.command) {
    const { command, args, env } = target;
    return modern ? new Stdio2({ command, args, env }) : new Stdio1({ command, args, env });
  }
  const requestInit = target.token ? { headers: { Authorization: `Bearer ${target.token}` } } : {};
  return modern ? new HTTP2(new URL(target.url), { requestInit }) : new HTTP1(new URL(target.url), { requestInit });
}

function read(result) {
  const text = result.content.filter((block) => block.type === "text").map((block) => block.text).join("\n");
  return { text, isError: !!result.isError };
}

// unique is a name that no other run has.
export const unique = (name) => `${name}-${process.pid}-${target.sdk}`;

// once is a promise with its resolve.
export function once() {
  let resolve;
  const promise = new Promise((r) => (resolve = r));
  return { promise, resolve };
}

// until is an onprogress that resolves when a message holds text.
export function until(text) {
  const seen = once();
  return { seen: seen.promise, onprogress: (p) => p.message?.includes(text) && seen.resolve() };
}
