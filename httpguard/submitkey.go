package httpguard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/fingerprint"
)

// submitKey names one submission: who sends what where. As a colon in user or
// method is escaped and the digest has a fixed length, it tells apart whatever
// differs in any of the parts.
func submitKey(user string, r *http.Request, intent []byte) string {
	target := r.URL.EscapedPath()
	if query := sortedQuery(r.URL.RawQuery); query != "" {
		target += "?" + query
	}
	sum := sha256.Sum256(intent)
	return "submit:" + keyPart(user, "%:{}") + ":" + keyPart(r.Method, "%:{}") + ":" +
		keyPart(target, "{}") + ":" + hex.EncodeToString(sum[:8])
}

// wholeBody is the canonical form of a body if it is JSON, so that the order of
// names does not matter, and else the bytes. No body at all is the empty object.
func wholeBody(r *http.Request, body []byte) []byte {
	if len(body) == 0 {
		return []byte("{}")
	}
	if !isJSON(mediaType(r.Header.Get("Content-Type"))) {
		return body
	}
	canonical, err := fingerprint.Canonical(nil, body, fingerprint.Limits{Bytes: len(body)})
	if err != nil {
		return body // what is wrong with it is the handler's to say
	}
	return canonical
}

// mediaType is what Content-Type says, without parameters; empty if it says nothing
// that can be read.
func mediaType(contentType string) string {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return media
}

func isJSON(media string) bool {
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

// sortedQuery is a query with its parameters in the order of their names. Those of
// one name stay as they are: a=1&a=2 may mean something else than a=2&a=1.
func sortedQuery(raw string) string {
	if raw == "" {
		return ""
	}
	parameters := strings.Split(raw, "&")
	slices.SortStableFunc(parameters, func(a, b string) int {
		nameA, _, _ := strings.Cut(a, "=")
		nameB, _, _ := strings.Cut(b, "=")
		return cmp.Compare(nameA, nameB)
	})
	return strings.Join(parameters, "&")
}

// maxPart is how long a part may be as it is: with three of them a key stays
// below the 1024 bytes that a lock takes, prefix included.
const maxPart = 256

// keyPart is part with the special bytes, and those that do not print, escaped
// as in a URL: braces since they say in a key of Redis where it is stored. What is too
// long is replaced by its digest, after "%~", which nothing escapes to and no
// path begins with.
func keyPart(part, special string) string {
	var b strings.Builder
	for i := range len(part) {
		if c := part[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(special, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	if b.Len() <= maxPart {
		return b.String()
	}
	return fmt.Sprintf("%%~%x", sha256.Sum256([]byte(part)))
}
