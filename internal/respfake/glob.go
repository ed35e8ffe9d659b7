package respfake

// glob matches as KEYS and SCAN do: * ? [abc] [^a-z] and \ before a character
// that is meant literally. A slash is a character like any other.
func glob(pattern, s string) bool {
	for len(pattern) > 0 {
		switch pattern[0] {
		case '*':
			for i := 0; i <= len(s); i++ {
				if glob(pattern[1:], s[i:]) {
					return true
				}
			}
			return false
		case '?':
			if s == "" {
				return false
			}
			pattern = pattern[1:]
		case '[':
			if s == "" {
				return false
			}
			in, rest := globClass(pattern[1:], s[0])
			if !in {
				return false
			}
			pattern = rest
		default:
			if pattern[0] == '\\' && len(pattern) > 1 {
				pattern = pattern[1:]
			}
			if s == "" || s[0] != pattern[0] {
				return false
			}
			pattern = pattern[1:]
		}
		s = s[1:]
	}
	return s == ""
}

// globClass says whether c is in the class that p is the inside of, and returns
// what follows the class.
func globClass(p string, c byte) (in bool, rest string) {
	negated := len(p) > 0 && p[0] == '^'
	if negated {
		p = p[1:]
	}
	for len(p) > 0 && p[0] != ']' {
		if p[0] == '\\' && len(p) > 1 {
			p = p[1:]
		}
		lo, hi := p[0], p[0]
		p = p[1:]
		if len(p) > 1 && p[0] == '-' {
			hi, p = p[1], p[2:]
		}
		in = in || min(lo, hi) <= c && c <= max(lo, hi)
	}
	if len(p) > 0 {
		p = p[1:]
	}
	return in != negated, p
}
