package httpguard

import (
	"net/http"
	"slices"
	"strings"
)

// storable are headers that describe the result rather than this exchange.
var storable = headerSet("Content-Type", "Content-Language", "Content-Encoding", "Content-Disposition",
	"Content-Location", "Location", "Etag", "Last-Modified", "Link", "Vary")

// unstorable are headers that are not shown a second time, whatever
// IdempotentConfig.StoreHeaders says: they belong to one connection, one moment, one trace or
// one login.
var unstorable = headerSet("Set-Cookie", "Set-Cookie2", "Authorization", "Authentication-Info", "Www-Authenticate",
	"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Date", "Age", "Server", "Content-Length",
	"Traceparent", "Tracestate", "Baggage", "B3", "Uber-Trace-Id", "X-Amzn-Trace-Id", "X-Cloud-Trace-Context",
	"X-Request-Id", "X-Correlation-Id", replayedHeader, degradedHeader)

func headerSet(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[http.CanonicalHeaderKey(name)] = true
	}
	return set
}

// storedHeader is what of a response's headers is stored: those that may be and
// that the handler has made different from before, when middleware further out had
// set its own, which does so again.
func storedHeader(before, after http.Header, listed map[string]bool) http.Header {
	named := map[string]bool{}
	for _, line := range after["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			named[http.CanonicalHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	stored := http.Header{}
	for name, values := range after {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !storable[canonical] && !listed[canonical],
			unstorable[canonical], named[canonical],
			strings.HasPrefix(canonical, "Proxy-"), strings.HasPrefix(canonical, "X-B3-"),
			len(values) == 0, slices.Equal(values, before[name]):
			continue
		}
		stored[name] = slices.Clone(values)
	}
	return stored
}

// replaceHeader makes h what with is.
func replaceHeader(h, with http.Header) {
	clear(h)
	for name, values := range with {
		h[name] = slices.Clone(values)
	}
}
