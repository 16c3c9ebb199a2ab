// Package transport carries MCP over Streamable HTTP and over stdio for one [server.MCPServer].
//
// mcp-go knows the methods of MCP; this package knows how their messages travel. It hands every message to
// [server.MCPServer.HandleMessage] and uses none of mcp-go's own transports, because those let one client cancel or
// overhear another's calls and lose the last notification before a result (upstream_test.go shows each such
// behaviour, and says when it is mended).
//
// What holds here, for every client and every revision of the protocol:
//
//   - A notification goes onto the response stream of the request whose handler sent it, before [Notify] returns. So
//     all of it arrives, in order, ahead of the result, and two calls never mix.
//   - A request is cancelled by its own client only. In the handshake revisions (2025-11-25 and before) that is
//     notifications/cancelled with the same owner, Mcp-Session-Id and request id, and a lost connection is no cancel.
//     In the stateless revision (2026-07-28) it is the end of the request's own connection, and a posted
//     notifications/cancelled does nothing. Over stdio it is notifications/cancelled with the request's id.
//   - Mcp-Session-Id carries its own proof (see [SessionKey]), so the server remembers nothing for it: ids outlive the
//     process, belong to one owner, and cost no memory.
//   - What a handler asks the client (see [Request]) goes onto its own request's stream, and is answered by that request's
//     owner and session only.
//   - What arrives is bounded and strict: size, depth, duplicate keys, encoding, batches (see parse).
//
// The handler's context tells why a call was cancelled: its [context.Cause] is [ErrCancelled], [ErrDisconnected] or
// [ErrShutdown].
package transport
