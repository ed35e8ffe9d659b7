package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Markers are the lines of a document between which figures stand. What is
// outside of them is people's.
const (
	markerFrom = "<!-- redlock-bench compare: from here -->"
	markerTo   = "<!-- redlock-bench compare: to here -->"
)

// errNoMarkers says that a document has no place for figures.
var errNoMarkers = errors.New("want a line " + markerFrom + " and after it a line " + markerTo + ", each once")

// hasPlace says why a comparison cannot be written into a document, if that is
// wanted.
func hasPlace(name string) error {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("flag -write: %w: want a document that is there and can be written", err)
	}
	text, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("flag -write: %w", err)
	}
	if _, err := between(text, nil); err != nil {
		return fmt.Errorf("flag -write: %s: %w", name, err)
	}
	return nil
}

// document writes the figures of a comparison into a document, if that is wanted.
func (c comparison) document(name string) error {
	if name == "" {
		return nil
	}
	if c.Interrupted {
		return fmt.Errorf("%s is left as it is: the comparison was interrupted", name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var figures bytes.Buffer
	c.markdown(&figures)
	text, err = between(text, figures.Bytes())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, text, 0o644)
}

// between is a text with something else between its markers.
func between(text, figures []byte) ([]byte, error) {
	from, to := []byte(markerFrom+"\n"), []byte(markerTo+"\n")
	if bytes.Count(text, from) != 1 || bytes.Count(text, to) != 1 {
		return nil, errNoMarkers
	}
	before, rest, _ := bytes.Cut(text, from)
	_, after, found := bytes.Cut(rest, to)
	if !found {
		return nil, errNoMarkers
	}
	return bytes.Join([][]byte{before, from, figures, to, after}, nil), nil
}

// markdown prints a comparison as a part of a document.
func (c comparison) markdown(w io.Writer) {
	fmt.Fprintf(w, "\nMeasured on %s on %d CPUs (%s), %s/%s %s, with %s and go-redis %s.\n",
		c.Started.UTC().Format("2 January 2006"), c.Machine.CPUs, c.Machine.CPU, c.Machine.OS, c.Machine.Arch, c.Machine.Kernel,
		c.Machine.Go, c.Software.GoRedis)
	for _, line := range append(c.about(), c.warnings()...) {
		fmt.Fprintf(w, "%s\n", line)
	}
	for _, t := range append(c.tables(), c.aimTable(), c.promises()) {
		if len(t.Rows) > 0 {
			t.markdown(w)
		}
	}
	fmt.Fprintln(w)
}
