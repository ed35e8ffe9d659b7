// Package httpguard keeps requests from having their effect twice, as middleware
// for net/http.
package httpguard

// keyHeader is the header of draft-ietf-httpapi-idempotency-key-header-07.
const keyHeader = "Idempotency-Key"
