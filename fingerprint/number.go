package fingerprint

import (
	"bytes"
	"strconv"
)

// decimal is the number 0.digits × 10^point, digits without zeros at either end.
// Every number but zero is that in exactly one way; zero has no digits.
type decimal struct {
	negative bool
	digits   []byte
	point    int64
}

// number reads a number and appends its canonical form.
func (r *reader) number(dst []byte) ([]byte, error) {
	var d decimal
	if r.peek() == '-' {
		d.negative = true
		r.at++
	}
	from := r.at
	whole := r.digits()
	switch {
	case len(whole) == 0:
		return nil, r.unexpected("want a digit")
	case len(whole) > 1 && whole[0] == '0':
		return nil, r.refuse(from, ErrSyntax, "want a number without leading zeros")
	}
	var fraction []byte
	if r.peek() == '.' {
		r.at++
		if fraction = r.digits(); len(fraction) == 0 {
			return nil, r.unexpected("want a digit after the point")
		}
	}
	d.digits = whole
	if len(fraction) > 0 {
		d.digits = bytes.Join([][]byte{whole, fraction}, nil)
	}
	zeros := len(d.digits)
	d.digits = bytes.TrimLeft(d.digits, "0")
	zeros -= len(d.digits)
	d.digits = bytes.TrimRight(d.digits, "0")
	d.point = int64(len(whole) - zeros)

	if c := r.peek(); c == 'e' || c == 'E' {
		r.at++
		exponent, err := r.exponent()
		if err != nil {
			return nil, err
		}
		d.point += exponent
	}
	if !d.inRange() {
		return nil, r.refuse(from, ErrRange, "want an exponent of at most 15 digits")
	}
	return d.append(dst), nil
}

func (r *reader) digits() []byte {
	from := r.at
	for isDigit(r.peek()) {
		r.at++
	}
	return r.in[from:r.at]
}

// exponent reads what is behind the e. From farExponent on it is that.
func (r *reader) exponent() (int64, error) {
	negative := false
	switch r.peek() {
	case '-':
		negative = true
		fallthrough
	case '+':
		r.at++
	}
	digits := r.digits()
	if len(digits) == 0 {
		return 0, r.unexpected("want a digit of the exponent")
	}
	var exponent int64
	for _, c := range digits {
		exponent = min(10*exponent+int64(c-'0'), farExponent)
	}
	if negative {
		return -exponent, nil
	}
	return exponent, nil
}

// maxExponent is how large an exponent may be, and how small, once there is one
// digit before the point. It is judged there, so that all spellings of a number
// are accepted or none. Larger ones could not be added to without care, and who
// computes with such numbers would refuse them.
const maxExponent = 1e15 - 1

// farExponent is out of range for any number of digits that fits in memory, and
// ten times as much is still an int64.
const farExponent = 1e17

func (d decimal) inRange() bool {
	return len(d.digits) == 0 || -maxExponent <= d.point-1 && d.point-1 <= maxExponent
}

// append writes the number as ECMAScript writes doubles, but with all its digits.
func (d decimal) append(dst []byte) []byte {
	n := int64(len(d.digits))
	if n == 0 {
		return append(dst, '0') // -0 as well
	}
	if d.negative {
		dst = append(dst, '-')
	}
	switch {
	case n <= d.point && d.point <= 21:
		dst = append(dst, d.digits...)
		return appendZeros(dst, d.point-n)
	case 0 < d.point && d.point <= 21:
		dst = append(dst, d.digits[:d.point]...)
		dst = append(dst, '.')
		return append(dst, d.digits[d.point:]...)
	case -6 < d.point && d.point <= 0:
		dst = append(dst, "0."...)
		dst = appendZeros(dst, -d.point)
		return append(dst, d.digits...)
	}
	dst = append(dst, d.digits[0])
	if n > 1 {
		dst = append(dst, '.')
		dst = append(dst, d.digits[1:]...)
	}
	dst = append(dst, 'e')
	if d.point > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, d.point-1, 10)
}

func appendZeros(dst []byte, n int64) []byte {
	return append(dst, "000000000000000000000"[:n]...)
}
