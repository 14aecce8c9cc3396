// Package kudurpc calls Apache Kudu's servers: frames, the negotiation of a connection, and calls
// in flight on it, whose answers come in any order.
//
// A Pool keeps a connection for each server and dials anew when one has ended. Its Do makes one
// attempt of one call; *Error says what went wrong at which server, and its Class what a caller can
// do about it. Repeating calls, finding leaders, and looking up tablets is up to the caller.
//
// Bytes from the network are never trusted: a frame is at most Options.MaxMessage bytes, the parts
// of a frame must fit it, and a call ends at the deadline of its context whatever the server does.
// A Pool is safe for concurrent use.
//
// Simpler than Kudu's clients: no Kerberos, no certificates of clients, and no sidecars in requests.
//
// A connection begins with 7 bytes from the client. All else, in both directions, is frames:
//
//	68 72 70 63 09 00 00   "hrpc", version, class of service, way of authentication
//
//	u32 BE   bytes that follow
//	varint   bytes of the header, then the header: RequestHeader or ResponseHeader
//	varint   bytes of the body, then the body: the message, then the sidecars
//
// Source: Kudu's docs/design-docs/rpc.md and src/kudu/rpc.
//
// Source: kudurpc spec §1–3 and 16.
package kudurpc
