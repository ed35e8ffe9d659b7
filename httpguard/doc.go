// Package httpguard keeps requests from having their effect twice. It has two
// middlewares of the form func(http.Handler) http.Handler, for net/http and every
// router that takes those:
//
//   - [SubmitOnce] lets the same submission in once at a time, and answers the
//     other one 429. It is for clients that send no key: a form, a double click.
//   - [Idempotent] runs a request with an Idempotency-Key once, and answers each
//     retry with what came of it.
//
// Both may stand before one handler. Then a request with a key is Idempotent's, and
// one without is SubmitOnce's. Authentication and authorization come before both, as
// both ask who sends the request; so does compression.
//
// # What they do not do
//
// SubmitOnce forgets a submission as soon as it has been answered, or at the end of
// its window. Idempotent remembers for as long as its store does, and a handler
// that was interrupted is looked into rather than run again, see package
// idempotency. Neither replaces a unique key in the database, which holds when a
// store has lost its records, nor a fence, which refuses a process that was paused
// and writes late.
//
// # Answers of their own
//
// What neither the handler nor a replay answers is application/problem+json, as in
// RFC 9457. Its type is a heading of docs/http.md, or of DocsURL, and its detail
// says whether to send the request again; Retry-After says when. With [Accepted],
// 202 has the same members as application/json.
package httpguard
