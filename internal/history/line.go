package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Write writes an event as one line of JSON, in one call of w: processes that
// have opened one file for appending need no lock for it, and one that is killed
// leaves whole lines. What Read would refuse is refused here.
func Write(w io.Writer, e Event) error {
	if err := e.check(); err != nil {
		return err
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

// Read reads events until the end. A line that is no event ends it with an error
// that names the line, and the events before it.
func Read(r io.Reader) (events []Event, err error) {
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return events, nil
		case err != nil && !errors.Is(err, io.EOF):
			return events, fmt.Errorf("line %d: %w", n, err)
		}
		e, err := parse(line)
		if err != nil {
			return events, fmt.Errorf("line %d: %w", n, err)
		}
		events = append(events, e)
	}
}

// parse reads one line. A field that is not known is an error: it may be one
// that is known, misspelled, and so missing.
func parse(line []byte) (e Event, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return e, errors.New("something follows the event")
	}
	return e, e.check()
}
