package fingerprint

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Limits bound what a JSON text may be. The zero Limits are the defaults.
type Limits struct {
	Bytes int // length of the text; 0 means 1 MiB
	Depth int // levels of objects and arrays within each other, up to 1000; 0 means 64
}

// maxDepth bounds the stack, and the work: an object whose names are out of order
// is copied once, and so is what is inside it, level by level.
const maxDepth = 1000

// Validate returns an error that names the field and what would be right, if a
// field is out of range.
func (l Limits) Validate() error {
	l = l.withDefaults()
	if l.Bytes < 0 {
		return fmt.Errorf("Limits.Bytes is %d: want a number of bytes above 0, such as 1048576", l.Bytes)
	}
	if l.Depth < 0 || l.Depth > maxDepth {
		return fmt.Errorf("Limits.Depth is %d: want a number of levels from 1 to %d, such as 64", l.Depth, maxDepth)
	}
	return nil
}

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = 1 << 20
	}
	if l.Depth == 0 {
		l.Depth = 64
	}
	return l
}

// Canonical appends the canonical form of one JSON text to dst, which must not
// share memory with it. Texts have the same canonical form exactly if they have
// the same value: the same names with the same values in each object, the same
// elements in the same order in each array, the same code points in each string,
// the same decimal numbers.
//
// The form is itself JSON, without white space, the names of an object sorted
// by their UTF-16 code units, strings with as few escapes as there can be. A
// number is written out if it is zero or from 1e-6 to below 1e21 in size, with
// an exponent otherwise, without zeros that do not count; -0 is 0. So it is
// never longer than about five times the text, whatever the exponents say.
//
// The error is an [*InputError], unless limits are not valid.
func Canonical(dst, json []byte, limits Limits) ([]byte, error) {
	if err := limits.Validate(); err != nil {
		return nil, err
	}
	limits = limits.withDefaults()
	if len(json) > limits.Bytes {
		return nil, &InputError{limits.Bytes, ErrTooLarge,
			fmt.Sprintf("want at most %d bytes, not %d", limits.Bytes, len(json))}
	}
	r := reader{in: json, limit: limits.Depth}
	dst, err := r.value(dst)
	if err != nil {
		return nil, err
	}
	if r.next(); r.at < len(json) {
		return nil, r.unexpected("want the end, after one value")
	}
	return dst, nil
}

// reader goes through a text once, from the front.
type reader struct {
	in    []byte
	at    int // what is before it has been read
	depth int // levels that are open
	limit int // how many may be
}

// peek is the byte at hand, not read yet. At the end it is 0, which is no part of
// JSON either.
func (r *reader) peek() byte {
	if r.at < len(r.in) {
		return r.in[r.at]
	}
	return 0
}

// next skips white space and is the byte after it, not read yet.
func (r *reader) next() byte {
	for {
		switch c := r.peek(); c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
}

// value reads a value and appends its canonical form.
func (r *reader) value(dst []byte) ([]byte, error) {
	switch c := r.next(); c {
	case '{':
		return r.object(dst)
	case '[':
		return r.array(dst)
	case '"':
		text, err := r.text()
		if err != nil {
			return nil, err
		}
		return appendText(dst, text), nil
	case 't':
		return r.literal(dst, "true")
	case 'f':
		return r.literal(dst, "false")
	case 'n':
		return r.literal(dst, "null")
	default:
		if c == '-' || isDigit(c) {
			return r.number(dst)
		}
		return nil, r.unexpected("want a value")
	}
}

func (r *reader) literal(dst []byte, word string) ([]byte, error) {
	for i := range len(word) {
		if r.peek() != word[i] {
			return nil, r.unexpected("want " + word)
		}
		r.at++
	}
	return append(dst, word...), nil
}

func (r *reader) array(dst []byte) ([]byte, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	dst = append(dst, '[')
	if r.next() == ']' {
		return r.close(append(dst, ']')), nil
	}
	for {
		var err error
		if dst, err = r.value(dst); err != nil {
			return nil, err
		}
		switch r.next() {
		case ',':
			r.at++
			dst = append(dst, ',')
		case ']':
			return r.close(append(dst, ']')), nil
		default:
			return nil, r.unexpected("want , or ] after an element")
		}
	}
}

func (r *reader) object(dst []byte) ([]byte, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	o := beginObject(dst)
	if r.next() == '}' {
		dst, err := o.finish(dst)
		return r.close(dst), err
	}
	for {
		if r.next() != '"' {
			return nil, r.unexpected(`want a name, which begins with "`)
		}
		offset := r.at
		name, err := r.text()
		if err != nil {
			return nil, err
		}
		if r.next() != ':' {
			return nil, r.unexpected("want : after a name")
		}
		r.at++
		dst = o.begin(dst, name, offset)
		if dst, err = r.value(dst); err != nil {
			return nil, err
		}
		o.end(dst)
		switch r.next() {
		case ',':
			r.at++
		case '}':
			dst, err := o.finish(dst)
			return r.close(dst), err
		default:
			return nil, r.unexpected("want , or } after a member")
		}
	}
}

// open reads the bracket that begins a level.
func (r *reader) open() error {
	if r.depth == r.limit {
		return r.refuse(r.at, ErrTooDeep, fmt.Sprintf("want at most %d levels", r.limit))
	}
	r.depth++
	r.at++
	return nil
}

// close reads the bracket that ends it.
func (r *reader) close(dst []byte) []byte {
	r.depth--
	r.at++
	return dst
}

func (r *reader) refuse(at int, err error, want string) error {
	return &InputError{at, err, want}
}

// unexpected refuses what is at hand, and says what it is.
func (r *reader) unexpected(want string) error {
	got := "the end"
	if r.at < len(r.in) {
		got = "a byte that is no UTF-8"
		if c, n := utf8.DecodeRune(r.in[r.at:]); c != utf8.RuneError || n > 1 {
			got = strconv.QuoteRune(c)
		}
	}
	return r.refuse(r.at, ErrSyntax, want+", not "+got)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
