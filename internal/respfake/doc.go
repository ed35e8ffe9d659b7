// Package respfake is a Redis server in memory, for tests that run in a
// testing/synctest bubble.
//
// A [Server] speaks RESP2 and RESP3 over connections that need no socket: its
// [Server.Dialer] goes into the options of a Redis client. All waiting in it,
// for bytes, for deadlines, for a dial that gets no answer, is durable blocking,
// and time is package time's, so in a bubble everything that a network makes
// slow takes virtual time. Outside a bubble it works in real time.
//
// Replies, error texts and expiry are those of Redis; a contract test holds
// the fake against a real server. It knows the commands a lock needs, not all of
// Redis, and it runs no Lua: a test registers what a script does in Go
// ([Server.Script]).
//
// Like Redis it serves all connections from one event loop. A request is run
// whole, requests of one connection keep their order, and of several
// connections the one is served first whose bytes arrived first.
//
// Faults are switched at run time: see faults.go. They are independent of each
// other, and what they do to bytes in flight is what TCP and a stopped or killed
// process do to them. In particular, bytes that a client has written reach the server
// even if the client closes the connection afterwards.
package respfake
