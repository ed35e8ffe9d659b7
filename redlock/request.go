package redlock

// form is how operations are put to a node.
type form struct {
	plain  bool // before Redis 7, SET refuses NX together with GET
	perKey bool // a member of a cluster takes only keys of one slot in a script
	whole  bool // scripts go in full, for this once: the node has lost them
	single bool // each key has a script call of its own, for this once
}

// part is one command of a pipeline, two for OpInspect, and what it carries.
type part []*Op

// part is the first command of a flight.
func (f form) part(flight []*Op) part {
	if op := flight[0]; op.Kind == OpInspect || op.isSet() || f.perKey || f.single {
		return flight[:1]
	}
	return sameKind(flight)
}

// isSet reports whether an operation is a SET; the others are scripts, and OpInspect.
func (op *Op) isSet() bool { return op.Kind == OpAcquire && op.Counter == "" }

// appendFlight appends the commands of a flight to a request. c.writing is held.
func (c *redisConn) appendFlight(b []byte, flight []*Op, f form) []byte {
	for len(flight) > 0 {
		p := f.part(flight)
		flight = flight[len(p):]
		switch op := p[0]; {
		case op.isSet():
			b = appendSet(b, op, f.plain)
		case op.Kind == OpInspect:
			b = appendWord(appendWord(appendWords(b, 2), "get"), op.Key)
			b = appendWord(appendWord(appendWords(b, 2), "pttl"), op.Key)
		default:
			// The first acquire brings its script along, known to the node or not: one
			// that had to be sent again would come after what stands behind it.
			first := op.Kind == OpAcquire && !c.fenced
			c.fenced = c.fenced || first
			b = appendCall(b, p, f.whole || first)
		}
	}
	return b
}

// appendSet appends the SET for an acquire. plain: it does not ask who has the key
// instead.
func appendSet(b []byte, op *Op, plain bool) []byte {
	if plain {
		b = append(b, "*6\r\n$3\r\nset\r\n"...)
	} else {
		b = append(b, "*7\r\n$3\r\nset\r\n"...)
	}
	b = appendWord(appendWord(b, op.Key), string(op.Token))
	b = append(b, "$2\r\nnx\r\n$2\r\npx\r\n"...)
	b = appendNumber(b, ceilMillis(op.TTL))
	if !plain {
		b = append(b, "$3\r\nget\r\n"...)
	}
	return b
}

// sameKind is the operations at the head of flight that are of one kind.
func sameKind(flight []*Op) part {
	for n, op := range flight {
		if op.Kind != flight[0].Kind {
			return flight[:n]
		}
	}
	return flight
}
