package fingerprint

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// text reads a string, from quote to quote, and returns it without escapes. The
// result may share memory with the input.
func (r *reader) text() ([]byte, error) {
	r.at++
	from, escapes := r.at, false
	for ; r.peek() != '"'; r.at++ {
		switch {
		case r.at == len(r.in):
			return nil, r.unexpected(`want " at the end of a string`)
		case r.in[r.at] < ' ':
			return nil, r.unexpected("want control characters escaped")
		case r.in[r.at] == '\\':
			// What it escapes is looked at later; it does not end the string.
			escapes = true
			if r.at++; r.at == len(r.in) || r.in[r.at] < ' ' {
				return nil, r.unexpected(`want one of "\/bfnrtu after \`)
			}
		}
	}
	raw := r.in[from:r.at]
	r.at++
	if !utf8.Valid(raw) {
		return nil, r.refuse(from+validPrefix(raw), ErrUnicode, "want UTF-8")
	}
	if !escapes {
		return raw, nil
	}
	return r.unescape(raw, from)
}

// validPrefix is how many bytes of s come before the first that is no UTF-8.
func validPrefix(s []byte) int {
	i := 0
	for i < len(s) {
		c, n := utf8.DecodeRune(s[i:])
		if c == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

// unescape replaces the escapes of a string that stands at offset from.
func (r *reader) unescape(raw []byte, from int) ([]byte, error) {
	text := make([]byte, 0, len(raw))
	for {
		plain, rest, escaped := bytes.Cut(raw, []byte{'\\'})
		text = append(text, plain...)
		if !escaped {
			return text, nil
		}
		at := from + len(plain) // of the backslash
		n := 1                  // bytes of the escape behind it
		switch c := rest[0]; c {
		case '"', '\\', '/':
			text = append(text, c)
		case 'b':
			text = append(text, '\b')
		case 'f':
			text = append(text, '\f')
		case 'n':
			text = append(text, '\n')
		case 'r':
			text = append(text, '\r')
		case 't':
			text = append(text, '\t')
		case 'u':
			unit, ok := hex4(rest[1:])
			if !ok {
				return nil, r.refuse(at, ErrSyntax, `want four hexadecimal digits after \u`)
			}
			n = 5
			if utf16.IsSurrogate(unit) {
				var low rune
				if bytes.HasPrefix(rest[5:], []byte(`\u`)) {
					low, _ = hex4(rest[7:])
				}
				if unit = utf16.DecodeRune(unit, low); unit == utf8.RuneError {
					return nil, r.refuse(at, ErrUnicode, "want a surrogate pair, a high one and then a low one")
				}
				n = 11
			}
			text = utf8.AppendRune(text, unit)
		default:
			return nil, r.refuse(at, ErrSyntax, `want one of "\/bfnrtu after \`)
		}
		raw, from = rest[n:], at+1+n
	}
}

// hex4 is the number in the first four bytes of s, and 0 if they are no digits.
func hex4(s []byte) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var unit rune
	for _, c := range s[:4] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		unit = unit<<4 | rune(c)
	}
	return unit, true
}

// appendText appends a string in quotes, and escapes only what has to be.
func appendText(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	done := 0
	for i, c := range text {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[done:i]...)
		done = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, text[done:]...)
	return append(dst, '"')
}
