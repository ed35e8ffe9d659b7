package redisproc

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Tear cuts the last n bytes off the append-only file of a server that has been
// killed, as a loss of power does to what the disk had not been given yet. One
// byte is enough to lose the last command. The next Restart with [Keep] loads
// what is left: by default a server takes a cut tail for what it is.
func (s *Server) Tear(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child.running() {
		return errors.New("tear: the server still runs")
	}
	path, err := newestLog(s.dir)
	if err != nil {
		return fmt.Errorf("tear: %w", err)
	}
	file, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("tear: %w", err)
	}
	if n < 0 || n > file.Size() {
		return fmt.Errorf("tear: %d bytes of the %d in %s", n, file.Size(), path)
	}
	return os.Truncate(path, file.Size()-n)
}

// newestLog is the file that a server with this directory appended to last. Since
// Redis 7 there is one for each rewrite, appendonly.aof.7.incr.aof; before, there
// was only one.
func newestLog(dir string) (string, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "*", "*.incr.aof"))
	if err == nil && len(logs) == 0 {
		logs, err = filepath.Glob(filepath.Join(dir, "*.aof"))
	}
	if err != nil || len(logs) == 0 {
		return "", errors.Join(errors.New("there is no append-only file"), err)
	}
	return slices.MaxFunc(logs, func(a, b string) int { return cmp.Compare(rewrite(a), rewrite(b)) }), nil
}

// rewrite is the number in the name of an append-only file.
func rewrite(path string) int {
	words := strings.Split(filepath.Base(path), ".")
	n, _ := strconv.Atoi(words[max(0, len(words)-3)])
	return n
}
