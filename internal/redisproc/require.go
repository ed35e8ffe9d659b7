package redisproc

import "os"

// TB is what [Require] needs of a testing.TB. Naming that type here would link
// the testing package into every program that runs servers.
type TB interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Require ends a test that needs a real server when there is none: it is
// skipped, with the reason. Where CI is "true", or REDIS_SERVER names a
// program, a server was promised and the test fails.
func Require(tb TB) {
	tb.Helper()
	_, err := Find()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true" || os.Getenv("REDIS_SERVER") != "":
		tb.Fatalf("a real server is required here: %v", err)
	default:
		tb.Skipf("no real server: %v", err)
	}
}
