package fence

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrStale says that a newer lease has been at the resource: whoever shows this
// fence is no longer the holder, and stops. Nothing was written, and the same
// fence will be refused for ever. From a [Row], which takes one write from each
// lease, it may also say that this lease has had its own.
var ErrStale = errors.New("stale fence")

// Token is a fence: of two leases on a key, one after the other, the later has
// the larger token, and no two leases have the same. The zero Token is none.
//
// Tokens are there to be compared. Their distance means nothing and gaps are
// normal, so never subtract them or count on the next one. A token is below
// 2^53, and so stays exact where numbers are doubles: in JSON, JavaScript and
// Lua. It fits a BIGINT; a 32-bit column is too small for it.
//
// As an argument of database/sql and in encoding/json a Token is a number; to
// what takes text only, such as go-redis, give its String.
type Token int64

// largest is the largest integer whose successor a double still tells from it.
const largest Token = 1<<53 - 1

// Valid reports whether t may be the fence of a lease: above 0 and below 2^53.
// Everything in this package refuses any other, with an error that is not
// ErrStale.
func (t Token) Valid() bool { return t > 0 && t <= largest }

// String is t in decimal digits, also for the zero Token.
func (t Token) String() string { return strconv.FormatInt(int64(t), 10) }

func (t Token) check() error {
	switch {
	case t == 0:
		return errors.New("fence: there is none: ask for a lock with fences")
	case !t.Valid():
		return fmt.Errorf("fence: %s is none: want one above 0 and below 2^53", t)
	}
	return nil
}
