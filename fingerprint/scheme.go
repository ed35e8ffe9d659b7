package fingerprint

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
)

// Config says how fingerprints are made. The zero Config is valid.
type Config struct {
	// Version names the contract: what goes into a fingerprint and how, and with
	// which key. Fingerprints of two versions are never equal. It has 1 to 32
	// letters, digits and any of "-", "_" and "."; empty means "v1".
	Version string

	// Key makes the sums HMAC-SHA256, so that nobody without it can find out a
	// request by trying. It has at least 16 bytes, better 32 of them at random.
	// Nil means none, and sums are SHA-256. A key that is empty but not nil is
	// refused, as it comes from a setting that is missing.
	Key []byte

	// Limits bound JSON texts.
	Limits Limits
}

// Scheme makes fingerprints. Its methods may be called at the same time.
type Scheme struct {
	version string
	key     []byte
	limits  Limits
}

// New returns the scheme that config describes, or an error that names the
// field that is not valid and what would be right. It does not keep the slices
// of config.
func New(config Config) (*Scheme, error) {
	if config.Version == "" {
		config.Version = "v1"
	}
	if !validVersion(config.Version) {
		return nil, fmt.Errorf(`Config.Version is %q: want 1 to 32 letters, digits, "-", "_" or ".", such as "v1"`, config.Version)
	}
	if config.Key != nil && len(config.Key) < 16 {
		return nil, fmt.Errorf("Config.Key has %d bytes: want at least 16, or nil for sums without a key", len(config.Key))
	}
	if err := config.Limits.Validate(); err != nil {
		return nil, fmt.Errorf("Config.%w", err)
	}
	return &Scheme{
		version: config.Version,
		key:     append([]byte(nil), config.Key...),
		limits:  config.Limits,
	}, nil
}

func validVersion(version string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return len(version) <= 32 && strings.Trim(version, letters) == "" && version != ""
}

// JSON is the fingerprint of a JSON text: Sum of its [Canonical] form, with the
// errors of that.
func (s *Scheme) JSON(text []byte) (Print, error) {
	canonical, err := Canonical(nil, text, s.limits)
	if err != nil {
		return "", err
	}
	return s.Sum(canonical), nil
}

// Sum is the fingerprint of parts, as they are. Where one part ends and the next
// begins is in it: ("a", "bc") and ("ab", "c") differ, and so do ("a") and
// ("a", "").
//
// It is the sum over the version and each of the parts, in order, every one of
// them after its length in eight bytes, the most significant first.
func (s *Scheme) Sum(parts ...[]byte) Print {
	var h hash.Hash
	if len(s.key) > 0 {
		h = hmac.New(sha256.New, s.key)
	} else {
		h = sha256.New()
	}
	write := func(part []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	write([]byte(s.version))
	for _, part := range parts {
		write(part)
	}
	return Print(s.version + ":" + hex.EncodeToString(h.Sum(nil)))
}

// Print is a fingerprint as it is stored: the version, a colon and 64 lower-case
// hexadecimal digits. The empty Print is none.
type Print string

// Version is the version of the scheme that made p, and empty if p is none.
func (p Print) Version() string {
	version, _, _ := strings.Cut(string(p), ":")
	return version
}

// Equal reports whether p and q are the same fingerprint. It takes the same time
// wherever they differ, and so tells nobody how close a guess was. The empty
// Print equals nothing, itself included: two requests of which nothing is known
// are not the same one.
func (p Print) Equal(q Print) bool {
	return p != "" && subtle.ConstantTimeCompare([]byte(p), []byte(q)) == 1
}
