package fingerprint

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Fields are the chosen fields of one request. Their order does not matter, their
// kind does: the string "1" is not the number 1, and an empty string, null and a
// field that is not there are three things.
//
// The fingerprint is that of the JSON object with these fields, so one of [Scheme.JSON]
// of such an object is equal to it. Fields are for use by one goroutine.
//
// There is no method for float64: what it holds of 0.1 depends on how it was
// computed. Decimal takes what the request said.
type Fields struct {
	scheme *Scheme
	values map[string][]byte // canonical, by name
	errs   []error
}

// Fields returns an empty set of fields.
func (s *Scheme) Fields() *Fields {
	return &Fields{scheme: s, values: map[string][]byte{}}
}

// String adds a string. It must be valid UTF-8, and so must every name.
func (f *Fields) String(name, value string) *Fields {
	if !utf8.ValidString(value) {
		return f.refuse(name, fmt.Errorf("%w: want UTF-8", ErrUnicode))
	}
	return f.add(name, appendText(nil, []byte(value)))
}

// OptString adds a string that a request may leave out, in which case it means
// fallback: value nil and value fallback are the same.
func (f *Fields) OptString(name string, value *string, fallback string) *Fields {
	if value == nil {
		return f.String(name, fallback)
	}
	return f.String(name, *value)
}

// Int adds a whole number.
func (f *Fields) Int(name string, value int64) *Fields {
	return f.add(name, strconv.AppendInt(nil, value, 10))
}

// Decimal adds the number that value spells, as JSON does: "12.50", "-3", "1e6".
// 12.5 and 12.50 are the same.
func (f *Fields) Decimal(name, value string) *Fields {
	r := reader{in: []byte(value)}
	number, err := r.number(nil)
	if err == nil && r.at < len(r.in) {
		err = r.unexpected("want the end, after the number")
	}
	if err != nil {
		return f.refuse(name, err)
	}
	return f.add(name, number)
}

// Bool adds true or false.
func (f *Fields) Bool(name string, value bool) *Fields {
	return f.add(name, strconv.AppendBool(nil, value))
}

// Null adds null, which is not the same as adding nothing.
func (f *Fields) Null(name string) *Fields { return f.add(name, []byte("null")) }

// JSON adds a JSON text as it came, such as the list of an order's items. The
// scheme's limits hold for it.
func (f *Fields) JSON(name string, text []byte) *Fields {
	canonical, err := Canonical(nil, text, f.scheme.limits)
	if err != nil {
		return f.refuse(name, err)
	}
	return f.add(name, canonical)
}

// Sum is the fingerprint of the fields. The error names every field that was
// refused, and wraps why: ErrDuplicate for a name that was added twice.
func (f *Fields) Sum() (Print, error) {
	canonical, err := f.Canonical()
	if err != nil {
		return "", err
	}
	return f.scheme.Sum(canonical), nil
}

// Canonical is the object that [Fields.Sum] is the fingerprint of, to be one part of
// [Scheme.Sum] among others, or to show why two fingerprints differ.
func (f *Fields) Canonical() ([]byte, error) {
	if len(f.errs) > 0 {
		return nil, errors.Join(f.errs...)
	}
	var dst []byte
	o := beginObject(dst)
	for name, value := range f.values {
		dst = append(o.begin(dst, []byte(name), 0), value...)
		o.end(dst)
	}
	return o.finish(dst)
}

func (f *Fields) add(name string, value []byte) *Fields {
	if !utf8.ValidString(name) {
		return f.refuse(name, fmt.Errorf("%w: want a name in UTF-8", ErrUnicode))
	}
	if _, there := f.values[name]; there {
		return f.refuse(name, fmt.Errorf("%w: want each field once", ErrDuplicate))
	}
	f.values[name] = value
	return f
}

func (f *Fields) refuse(name string, err error) *Fields {
	f.errs = append(f.errs, fmt.Errorf("field %q: %w", name, err))
	return f
}
