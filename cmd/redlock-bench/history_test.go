package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/quorumlock/quorumlock/internal/history"
)

// What others read is what the run's own check judged.
func TestHistoryIsReadBackAsItWasHeld(t *testing.T) {
	holds := []history.Hold{
		{Key: "a", Holder: 0, Fence: 7, Called: 1, Acquired: 2, Until: 9, Released: 3},
		{Key: "a", Holder: 1, Called: 2, Acquired: 4, Until: 12, Lost: 5, Released: 6},
		{Key: "b", Holder: 0, Fence: 1, Called: 7, Acquired: 8, Until: 20},
	}
	name := filepath.Join(t.TempDir(), "history")
	file, err := createHistory(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeHistory(file, holds); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	events, err := history.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	run, err := history.Recorded(events)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(run.Holds, holds) {
		t.Errorf("got  %+v\nwant %+v", run.Holds, holds)
	}
}

func TestHistoryThatCannotBeWrittenIsAnError(t *testing.T) {
	if _, err := createHistory(filepath.Join(t.TempDir(), "no", "such")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	file, err := createHistory(filepath.Join(t.TempDir(), "history"))
	if err != nil {
		t.Fatal(err)
	}
	impossible := []history.Hold{{Key: "a", Called: 1, Acquired: 2}} // it never ends
	if err := writeHistory(file, impossible); err == nil {
		t.Error("no error")
	}
}
