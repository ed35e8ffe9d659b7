package fingerprint

import (
	"bytes"
	"slices"
)

// object puts the members of an object in order, which come in any.
type object struct {
	start   int // in dst, of what is behind the opening brace
	members []member
}

type member struct {
	name     []byte // without escapes
	offset   int    // of the name in the text, for errors
	from, to int    // in dst: the name, a colon and the value
}

func beginObject(dst []byte) object { return object{start: len(dst) + 1} }

// begin appends what is before a member's value.
func (o *object) begin(dst, name []byte, offset int) []byte {
	if len(o.members) == 0 {
		dst = append(dst, '{')
	} else {
		dst = append(dst, ',')
	}
	o.members = append(o.members, member{name: name, offset: offset, from: len(dst)})
	return append(appendText(dst, name), ':')
}

// end says that the value has been appended.
func (o *object) end(dst []byte) { o.members[len(o.members)-1].to = len(dst) }

// finish sorts the members and ends the object. A name that occurs twice is
// refused where it comes the second time.
func (o *object) finish(dst []byte) ([]byte, error) {
	if len(o.members) == 0 {
		return append(dst, "{}"...), nil
	}
	// Equal names stay in the order of the text.
	byName := func(a, b member) int { return compareUTF16(a.name, b.name) }
	if !slices.IsSortedFunc(o.members, byName) {
		slices.SortStableFunc(o.members, byName)
		// In order behind what is there, and then in its place: so all the levels
		// of a text share one piece of spare memory.
		end := len(dst)
		for i, m := range o.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, dst[m.from:m.to]...)
		}
		copy(dst[o.start:], dst[end:])
		dst = dst[:end]
	}
	for i, m := range o.members[1:] {
		if bytes.Equal(m.name, o.members[i].name) {
			return nil, &InputError{m.offset, ErrDuplicate, "want each name of an object once"}
		}
	}
	return append(dst, '}'), nil
}

// compareUTF16 compares two UTF-8 strings as if they were UTF-16, unit by unit.
// That is the order of their bytes, except that code points from U+10000, which
// are surrogates in UTF-16, come before U+E000 to U+FFFF.
func compareUTF16(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		// A lead byte of a code point from U+E000 is 0xEE or 0xEF, one from U+10000
		// is above that. No other bytes of UTF-8 are that large.
		if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
			x, y = y, x
		}
		return int(x) - int(y)
	}
	return len(a) - len(b)
}
