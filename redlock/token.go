package redlock

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"

	"github.com/google/uuid"
)

// Token proves ownership of a key to a node: whoever knows it may extend and
// release. It is what the nodes store, 36 characters of a random UUID (RFC
// 9562, version 4; 122 random bits from crypto/rand).
//
// Printing and logging a Token shows only its digest; string(token) is the
// token itself.
type Token string

// newToken makes a token that nobody has used before. It asks the system each
// time, also in programs that have given uuid a pool.
func newToken() (Token, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	id := uuid.UUID(random)
	id[6] = id[6]&0x0f | 0x40 // version 4
	id[8] = id[8]&0x3f | 0x80 // variant of the RFC
	return Token(id.String()), nil
}

// Digest is a short name for the token that does not give it away: the first
// eight hexadecimal digits of its SHA-256 sum, "" for no token.
func (t Token) Digest() string {
	if t == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(t))
	return hex.EncodeToString(sum[:4])
}

// String is the digest, so that a token does not end up in a log by accident.
func (t Token) String() string { return t.Digest() }

// GoString is the digest.
func (t Token) GoString() string { return t.Digest() }

// LogValue is the digest.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.Digest()) }

// MarshalText is the digest, so JSON does not give the token away either.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.Digest()), nil }
