package respfake

import "time"

// A stream carries bytes one way. What is sent arrives after some delay, and
// never before what was sent earlier, because only the first piece is ever looked
// at. The zero stream is open and empty.
type stream struct {
	pieces []piece
}

type piece struct {
	at   time.Time // when the reader's side has it
	data []byte
	end  error // not nil: the stream ends here, and this is how
}

// send lets data arrive at the given time, or right behind what is still under
// way. The stream keeps data.
func (s *stream) send(at time.Time, data []byte) {
	s.pieces = append(s.pieces, piece{at: at, data: data})
}

// finish lets the reader see err behind everything sent so far.
func (s *stream) finish(at time.Time, err error) {
	s.pieces = append(s.pieces, piece{at: at, end: err})
}

// read moves what has arrived by now into b. It returns 0 and nil when that is
// nothing, and the end only when no byte is left before it.
func (s *stream) read(now time.Time, b []byte) (int, error) {
	n := 0
	for len(s.pieces) > 0 && n < len(b) {
		head := &s.pieces[0]
		if head.at.After(now) {
			break
		}
		if head.end != nil {
			if n > 0 {
				break
			}
			return 0, head.end
		}
		k := copy(b[n:], head.data)
		n += k
		head.data = head.data[k:]
		if len(head.data) == 0 {
			s.pieces = s.pieces[1:]
		}
	}
	return n, nil
}

// next is when the next unread byte, or the end, arrives or has arrived.
func (s *stream) next() (at time.Time, ok bool) {
	if len(s.pieces) == 0 {
		return time.Time{}, false
	}
	return s.pieces[0].at, true
}

// readable says whether bytes have arrived by now that nobody has read.
func (s *stream) readable(now time.Time) bool {
	return len(s.pieces) > 0 && s.pieces[0].end == nil && !s.pieces[0].at.After(now)
}

// discard loses everything that was not read, also what is under way.
func (s *stream) discard() {
	s.pieces = nil
}
