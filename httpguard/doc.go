// Package httpguard keeps requests from having their effect twice, as middleware
// for net/http.
package httpguard
