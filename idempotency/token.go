package idempotency

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// Token proves to a store who owns a record. Each claim has a fresh one of 128
// random bits; it is compared for equality only, and printed only as its digest.
type Token string

// NewToken returns a token that no one else has.
func NewToken() Token { return Token(rand.Text()) }

// Digest stands for the token in logs and traces.
func (t Token) Digest() string {
	sum := sha256.Sum256([]byte(t))
	return hex.EncodeToString(sum[:4])
}
