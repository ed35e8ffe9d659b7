package cluster

import (
	"context"
	"os"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/test/cluster/nodes"
)

// backend is what a scenario runs on.
type backend struct {
	name     string
	nodes    nodes.Backend
	resource nodes.Backend
}

// backends are all there are. Each ends a test where it cannot be had.
var backends = map[string]func(*testing.T) []backend{onProcesses: processes, onContainers: containers, onCompose: compose}

func processes(t *testing.T) []backend {
	t.Helper()
	redisproc.Require(t)
	return []backend{{onProcesses, nodes.Processes{}, nodes.Processes{}}}
}

// cluster is five nodes and the resource.
func (b backend) cluster(t *testing.T, ctx context.Context, durable bool) (five []*nodes.Node, resource *nodes.Node) {
	t.Helper()
	five = startAll(t, ctx, b.nodes, []bool{durable, durable, durable, durable, durable})
	return five, startAll(t, ctx, b.resource, []bool{false})[0]
}

// required ends a test that needs what is not there: it is skipped, but fails in
// CI, where all of it was promised.
func required(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
