package main

import (
	"fmt"
	"strings"
)

// patch is a unified diff.
type patch []change

// change is what a patch does to one file.
type change struct {
	file  string // below the root of the tree
	hunks []hunk
}

// hunk is one place of a file, before and after.
type hunk struct{ old, new string }

// readPatch reads a unified diff of files that stay where they are.
func readPatch(text string) (patch, error) {
	var p patch
	var at *hunk
	for line := range strings.Lines(text) {
		name, isFile := strings.CutPrefix(line, "--- a/")
		switch {
		case isFile:
			p, at = append(p, change{file: strings.TrimSpace(name)}), nil
		case len(p) == 0:
			return nil, fmt.Errorf("%q: want --- a/FILE", line)
		case at == nil && strings.HasPrefix(line, "+++ b/"):
			if name := strings.TrimSpace(line[len("+++ b/"):]); name != p[len(p)-1].file {
				return nil, fmt.Errorf("%q is to become %q: want one name", p[len(p)-1].file, name)
			}
		case strings.HasPrefix(line, "@@ "):
			c := &p[len(p)-1]
			c.hunks = append(c.hunks, hunk{})
			at = &c.hunks[len(c.hunks)-1]
		case at == nil:
			return nil, fmt.Errorf("%q: want @@", line)
		case line[0] == ' ':
			at.old += line[1:]
			at.new += line[1:]
		case line[0] == '-':
			at.old += line[1:]
		case line[0] == '+':
			at.new += line[1:]
		default:
			return nil, fmt.Errorf("%q is no line of a patch", line)
		}
	}
	if len(p) == 0 {
		return nil, fmt.Errorf("it changes nothing")
	}
	return p, nil
}

// apply is the text with the hunks' places replaced. Each is looked for by what it
// says and not by its line's number, so that a patch outlives whatever else changes
// in the file; a place that is not there, or not the only one, is refused.
func (c change) apply(text string) (string, error) {
	for _, h := range c.hunks {
		if n := strings.Count(text, h.old); n != 1 || h.old == h.new {
			return "", fmt.Errorf("%s: the patch no longer applies: %d places read\n%s", c.file, n, h.old)
		}
		text = strings.Replace(text, h.old, h.new, 1)
	}
	return text, nil
}
