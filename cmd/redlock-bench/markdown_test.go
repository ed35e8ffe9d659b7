package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyWhatIsBetweenTheMarkersChanges(t *testing.T) {
	const before, after = "# Title\nfrom here\n", "to here, and on\n"
	text := before + markerFrom + "\nold\n" + markerTo + "\n" + after
	got, err := between([]byte(text), []byte("new\n"))
	if want := before + markerFrom + "\nnew\n" + markerTo + "\n" + after; err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	again, err := between(got, []byte("new\n"))
	if err != nil || string(again) != string(got) {
		t.Errorf("a second time: %v\n%s", err, again)
	}
}

func TestDocumentWithoutItsMarkersIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "text\n", markerFrom + "\n", markerTo + "\n", markerTo + "\n" + markerFrom + "\n",
		markerFrom + "\n" + markerFrom + "\n" + markerTo + "\n", markerFrom + "\n" + markerTo + "\n" + markerTo + "\n",
	} {
		if got, err := between([]byte(text), []byte("new\n")); !errors.Is(err, errNoMarkers) {
			t.Errorf("%q: %v, %q", text, err, got)
		}
	}
}

func TestDocumentIsLeftAloneWhenThereIsNothingToSay(t *testing.T) {
	name := filepath.Join(t.TempDir(), "performance.md")
	text := markerFrom + "\nold\n" + markerTo + "\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := comparison{Interrupted: true}
	if err := c.document(name); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Error(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != text {
		t.Errorf("%v, %q", err, got)
	}
	if err := c.document(""); err != nil {
		t.Error(err)
	}
	c.Interrupted = false
	if err := c.document(name + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
