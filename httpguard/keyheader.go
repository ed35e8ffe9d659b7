package httpguard

import (
	"errors"
	"fmt"
	"strings"
)

// keyHeader is the header of draft-ietf-httpapi-idempotency-key-header-07.
const keyHeader = "Idempotency-Key"

const maxKey = 255 // bytes, without quotes

// parseKey is the key that the lines of Idempotency-Key have. The draft wants a
// String of RFC 9651, "in quotes"; most clients send the bare key, and unless
// strict is set that is the same key. The error is for the client.
func parseKey(lines []string, strict bool) (string, error) {
	if len(lines) != 1 {
		return "", fmt.Errorf("it is there %d times: want it once", len(lines))
	}
	text := strings.Trim(lines[0], " \t")
	var key string
	var err error
	if strings.HasPrefix(text, `"`) {
		key, err = unquote(text)
	} else if strict {
		err = errors.New(`it is not in quotes: want a string such as "8e03978e-40d5-43dd-bc93-6894a57f9324"`)
	} else {
		key, err = bare(text)
	}
	switch {
	case err != nil:
		return "", err
	case key == "":
		return "", errors.New("it is empty")
	case len(key) > maxKey:
		return "", fmt.Errorf("it has %d bytes: at most %d are allowed", len(key), maxKey)
	}
	return key, nil
}

// bare is a key without quotes. What would begin another item of a list, or a
// parameter, is no part of one: a proxy may have joined two lines into this.
func bare(text string) (string, error) {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' || strings.IndexByte(`",;\`, c) >= 0 {
			return "", fmt.Errorf("%q at byte %d is not allowed without quotes", rune(c), i)
		}
	}
	return text, nil
}

// unquote is the String of RFC 9651, section 4.2.5, that text is. Parameters behind it
// are refused, as the draft defines none.
func unquote(text string) (string, error) {
	var key strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' && i == len(text)-1:
			return key.String(), nil
		case c == '"':
			return "", errors.New("something follows the closing quote: want the string alone, without parameters")
		case c == '\\':
			if i++; i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", errors.New(`a backslash stands before neither a quote nor another: want \" or \\`)
			}
			key.WriteByte(text[i])
		case c < ' ' || c > '~':
			return "", fmt.Errorf("%q at byte %d is not allowed: want printable ASCII", rune(c), i)
		default:
			key.WriteByte(c)
		}
	}
	return "", errors.New("the closing quote is missing")
}
