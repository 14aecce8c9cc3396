// Package inspect serves pages about a store: its tables and rows, where the bytes are, the work of
// a read, and the work of past flushes and compactions. It only reads.
//
//	http.Handle("/oribi/", inspect.Handler(store, inspect.Prefix("/oribi")))
//
// The program may write to the store, with concurrent writers, or the store may be a follower
// (oribi.Options.Follow), which Handler refreshes before each page. The command "oribi inspect"
// serves a follower.
//
// # Access
//
// Who can reach the handler can read every row. By default it answers requests for a loopback
// address or "localhost" only, whatever address it is served at, so that no other site can reach it
// by a name of its own (DNS rebinding); Hosts adds names. With Token, the first request needs
// "?token=…", which a redirect moves into a cookie. Without it, the program has to check who asks.
// Only GET and HEAD are served. Requests of other sites are refused. Pages contain no script and no
// style inline, and their Content-Security-Policy allows none.
//
// # Pages
//
// Each page is also available as JSON, with the header "Accept: application/json":
// docs/inspect.md describes the fields. A page takes bounded time, memory and size; long lists are
// divided into pages of their own.
//
// The handler is safe for concurrent use. It has no goroutine while no request runs, except that it
// samples the store's metrics every other second until a minute after the last page. It needs no
// Close; after Close of the store it answers with an error.
package inspect
