package idempotency

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
)

// Seal encrypts responses before they are stored, with AES-GCM. A sealed response
// can be read only under the key of its record, so that nobody who can write to
// the store can show one client the response of another. Its methods may be
// called concurrently.
type Seal struct {
	first string // with what is sealed
	aeads map[string]cipher.AEAD
}

// SealKey is a key under a name that is stored beside what it seals.
type SealKey struct {
	ID  string // 1 to 255 bytes
	Key []byte // 16, 24 or 32 bytes
}

// NewSeal returns a Seal that seals with first and opens what any of the keys has
// sealed. To change the key, give the new one first and keep the old until
// records under it are gone: what has no key any more is not replayable, and not
// run again either.
func NewSeal(first SealKey, older ...SealKey) (*Seal, error) {
	s := &Seal{first: first.ID, aeads: map[string]cipher.AEAD{}}
	for _, k := range append([]SealKey{first}, older...) {
		if k.ID == "" || len(k.ID) > 255 {
			return nil, invalid("SealKey.ID has %d bytes: want 1 to 255", len(k.ID))
		}
		if s.aeads[k.ID] != nil {
			return nil, invalid("SealKey.ID %q is there twice", k.ID)
		}
		block, err := aes.NewCipher(k.Key)
		if err != nil {
			return nil, invalid("SealKey.Key of %q has %d bytes: want 16, 24 or 32", k.ID, len(k.Key))
		}
		if s.aeads[k.ID], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, fmt.Errorf("seal with %q: %w", k.ID, err)
		}
	}
	return s, nil
}

// seal is what is stored in place of plain: the form, the key's name after its
// length, and the rest.
func (s *Seal) seal(k Key, plain []byte) []byte {
	b := append([]byte{sealed, byte(len(s.first))}, s.first...)
	return s.aeads[s.first].Seal(b, nil, plain, []byte(k.String()))
}

func (s *Seal) open(k Key, b []byte) ([]byte, error) {
	if len(b) < 2 || len(b) < 2+int(b[1]) {
		return nil, fmt.Errorf("%w: what is stored is too short", ErrNotReplayable)
	}
	end := 2 + int(b[1])
	id, rest := string(b[2:end]), b[end:]
	if s == nil || s.aeads[id] == nil {
		return nil, fmt.Errorf("%w: it is sealed with %q, and that key is not here", ErrNotReplayable, id)
	}
	plain, err := s.aeads[id].Open(nil, nil, rest, []byte(k.String()))
	if err != nil {
		return nil, fmt.Errorf("%w: opened with %q: %w", ErrNotReplayable, id, err)
	}
	return plain, nil
}

// store is the form in which r is stored under k.
func (s *Seal) store(k Key, r Result) []byte {
	if s == nil {
		return r.encode()
	}
	return s.seal(k, r.encode())
}

// load is the Result that is stored under k as b. Once sealing is on, nothing
// else is believed.
func (s *Seal) load(k Key, b []byte) (Result, error) {
	switch {
	case len(b) > 0 && b[0] == sealed:
		plain, err := s.open(k, b)
		if err != nil {
			return Result{}, err
		}
		return decode(plain)
	case s != nil:
		return Result{}, fmt.Errorf("%w: it is not sealed", ErrNotReplayable)
	}
	return decode(b)
}
