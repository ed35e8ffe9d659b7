package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// maxPart is the longest part of a key, in bytes. Three of them, with every byte
// escaped, still fit into an index entry of PostgreSQL.
const maxPart = 255

// Key names one intent: what a client wants done once, however often it asks.
// None of its parts may be empty. It is not the key of a lock: many intents
// compete for one lock, and a key outlives every lease by hours.
type Key struct {
	// Operation is what is asked for, such as "orders" or "POST /orders".
	Operation string

	// Principal is on whose behalf, such as a user or a tenant: what the server
	// has established, nothing that the client merely says. Two principals that
	// send the same Value never meet.
	Principal string

	// Value is what the client sent, such as the content of Idempotency-Key.
	Value string
}

// Validate returns an error that wraps [ErrInvalid] if a part of the key is empty
// or has more than 255 bytes.
func (k Key) Validate() error {
	for _, part := range []struct{ name, text string }{
		{"Operation", k.Operation}, {"Principal", k.Principal}, {"Value", k.Value},
	} {
		if part.text == "" {
			return invalid("Key.%s is empty", part.name)
		}
		if len(part.text) > maxPart {
			return invalid("Key.%s has %d bytes: at most %d are allowed", part.name, len(part.text), maxPart)
		}
	}
	return nil
}

// String is the key as stores keep it: its parts with a colon between them, as in
// orders:u1001:req-001. Bytes that are not printable ASCII, and any of %:{}, are
// written as %3A: two keys that differ never have the same text, and no part of
// one chooses the slot of a Redis Cluster.
func (k Key) String() string {
	b := make([]byte, 0, len(k.Operation)+len(k.Principal)+len(k.Value)+2)
	b = appendEscaped(b, k.Operation)
	b = appendEscaped(append(b, ':'), k.Principal)
	b = appendEscaped(append(b, ':'), k.Value)
	return string(b)
}

// Digest stands for the key in logs and traces: 16 hexadecimal digits that do not
// show what a client sent, but are the same for the same key.
func (k Key) Digest() string {
	sum := sha256.Sum256([]byte(k.String()))
	return hex.EncodeToString(sum[:8])
}

// ParseKey is the key whose String is text. For any other text the error wraps
// [ErrInvalid].
func ParseKey(text string) (Key, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return Key{}, invalid("%q is no key: want three parts with a colon between them", text)
	}
	for i, part := range parts {
		plain, err := unescaped(part)
		if err != nil {
			return Key{}, err
		}
		parts[i] = plain
	}
	k := Key{parts[0], parts[1], parts[2]}
	if k.String() != text {
		return Key{}, invalid("%q is no key: it would be written as %q", text, k.String())
	}
	return k, k.Validate()
}

func appendEscaped(b []byte, part string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(part) {
		c := part[i]
		if c <= ' ' || c > '~' || strings.IndexByte("%:{}", c) >= 0 {
			b = append(b, '%', digits[c>>4], digits[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}

func unescaped(part string) (string, error) {
	var b strings.Builder
	for part != "" {
		before, after, found := strings.Cut(part, "%")
		b.WriteString(before)
		if !found {
			break
		}
		if len(after) < 2 {
			return "", invalid("%q ends within an escape", part)
		}
		c, err := hex.DecodeString(after[:2])
		if err != nil {
			return "", fmt.Errorf("%w: %q: %w", ErrInvalid, part, err)
		}
		b.Write(c)
		part = after[2:]
	}
	return b.String(), nil
}
