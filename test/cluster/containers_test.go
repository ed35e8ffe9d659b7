package cluster

import (
	"cmp"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/test/cluster/nodes"
)

// imagesVariable is the environment variable that names other images than these,
// which `make images` builds. None is pulled.
const (
	imagesVariable = "QUORUMLOCK_IMAGES"
	madeImages     = "quorumlock-test/redis:7.0 quorumlock-test/redis:8.0 quorumlock-test/valkey:9"
)

// engine is for one test; it is skipped where there is none.
func engine(t *testing.T) *nodes.Engine {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	e, err := nodes.NewEngine(ctx)
	if err != nil {
		required(t, "no Docker engine: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), hang)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return e
}

// images are those to test with, which are there.
func images(t *testing.T, e *nodes.Engine) []string {
	t.Helper()
	names := strings.Fields(cmp.Or(os.Getenv(imagesVariable), madeImages))
	for _, name := range names {
		if _, err := e.ImageInspect(t.Context(), name); err != nil {
			required(t, "no image %s: `make images` builds it, or %s names others: %v", name, imagesVariable, err)
		}
	}
	return names
}

// containers are those of each image.
func containers(t *testing.T) (several []backend) {
	t.Helper()
	e := engine(t)
	for _, image := range images(t, e) {
		c := nodes.Containers{Engine: e, Image: image}
		several = append(several, backend{onContainers, c, c})
	}
	return several
}

// compose is the cluster that is described in the file, of the last of the images.
func compose(t *testing.T) []backend {
	t.Helper()
	e := engine(t)
	all := images(t, e)
	image := all[len(all)-1]
	ctx, cancel := context.WithTimeout(context.Background(), 2*hang)
	defer cancel()
	c, err := nodes.NewCompose(ctx, e, "../../docker-compose.cluster.yml", image)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), hang)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		required(t, "no cluster of docker-compose.cluster.yml: %v", err)
	}
	return []backend{{onCompose, c, nodes.Containers{Engine: e, Image: image}}}
}
