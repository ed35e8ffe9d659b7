// Package fingerprint tells whether two requests ask for the same thing, so that
// a key that is sent again with another request is noticed and not answered with
// the first one's result.
//
// A [Scheme] makes fingerprints, by one of three ways:
//
//   - [Scheme.JSON] of a JSON text as a whole.
//   - [Scheme.Fields] of the fields that you choose. This is the one to take where
//     requests also carry what is no part of their intent: times, trace ids,
//     the client's version.
//   - [Scheme.Sum] of any parts, such as method, path and [Canonical] JSON.
//
// The order of an object's names, white space, escapes in strings and the
// spelling of numbers do not matter: 1, 1.0 and 10e-1 are one number. Everything
// else does: an added name, null in place of nothing, "1" in place of 1, the last
// digit of any number.
//
// # Numbers are exact
//
// The canonical form is that of RFC 8785, except that numbers are decimal
// numbers and never pass through floating point. There, 1234567890123456789 and
// 1234567890123456788 become the same bytes, as they are the same double, and two
// orders that differ in such an id would get each other's result. Here they
// differ. Numbers that a double holds with all their digits, which are those of
// ordinary size with up to 15 of them, have the bytes of RFC 8785.
//
// # What is refused
//
// What two readers may understand differently has no fingerprint: a name that
// occurs twice in an object, invalid UTF-8, half a surrogate pair, anything that
// is not strict JSON. Neither has what is too large or too deep ([Limits]). Errors wrap
// one of the package's sentinels, and for JSON are an [*InputError].
//
// # Versions
//
// Which fields are in a fingerprint, in which units and with which defaults, is
// a contract with the fingerprints that are stored already. When it changes, or
// when the key does, so must [Config].Version: it is in the sum, and in front of
// the text, as in "v1:9c6f…". While records of the old version are still there,
// both schemes are kept, and [Print.Version] says which of them a record is
// compared by.
//
// # What it does not do
//
// It does not normalise Unicode: é as one code point and as e with an accent are
// two strings; normalise before, if clients mix them. It does not know units,
// defaults or upper case that means the same as lower case. And without a key a
// fingerprint hides nothing: who can guess the request, a card number say, can
// compute the sum and compare. Give [Config].Key where records are read by people
// who must not learn the requests.
package fingerprint
