package fingerprint

import (
	"errors"
	"fmt"
)

var (
	// ErrTooLarge says that the text is longer than [Limits] allow. It has not
	// been read.
	ErrTooLarge = errors.New("text too large")

	// ErrTooDeep says that objects and arrays are nested deeper than [Limits]
	// allow.
	ErrTooDeep = errors.New("nested too deeply")

	// ErrSyntax says that the text is not JSON as RFC 8259 has it.
	ErrSyntax = errors.New("not strict JSON")

	// ErrUnicode says that a string is not Unicode: bytes that are no UTF-8, or
	// half a surrogate pair.
	ErrUnicode = errors.New("not Unicode")

	// ErrDuplicate says that a name occurs twice in an object, so that readers
	// may differ in which of the values they take.
	ErrDuplicate = errors.New("duplicate name")

	// ErrRange says that a number's exponent has more than 15 digits, once there is
	// one digit before the point.
	ErrRange = errors.New("exponent out of range")
)

// InputError says where a JSON text was refused, and why. It quotes nothing of
// the text but one character, so it may be logged and shown to the client.
type InputError struct {
	Offset int    // of the byte that was refused, from 0
	Err    error  // one of the package's sentinels
	Want   string // what would be right there
}

func (e *InputError) Error() string {
	return fmt.Sprintf("offset %d: %v: %s", e.Offset, e.Err, e.Want)
}

// Unwrap is the sentinel.
func (e *InputError) Unwrap() error { return e.Err }
