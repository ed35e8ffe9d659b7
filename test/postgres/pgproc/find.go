package pgproc

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// Find is the directory of the server's programs: that of initdb on PATH, else
// the one of the highest version where Debian's packages put them.
func Find() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		// Where it is a link, postgres is beside what it leads to.
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", errors.New("no initdb, neither on PATH nor in /usr/lib/postgresql/*/bin")
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) })), nil
}

// version is that of a program of Debian's, 15 for /usr/lib/postgresql/15/bin/initdb.
func version(path string) int {
	v, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return v
}

// Require ends a test that needs PostgreSQL when there is none: it is skipped,
// with the reason, or fails where CI is "true".
func Require(tb testing.TB) {
	tb.Helper()
	_, err := Find()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		tb.Fatalf("PostgreSQL is required here: %v", err)
	default:
		tb.Skipf("no PostgreSQL: %v", err)
	}
}
