package cluster

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/test/cluster/nodes"
)

// Images are taken from here, separated by spaces. They are not built or pulled.
const imagesVariable = "QUORUMLOCK_IMAGES"

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
	names := strings.Fields(os.Getenv(imagesVariable))
	if len(names) == 0 {
		required(t, "no images: %s names none", imagesVariable)
	}
	for _, name := range names {
		if _, err := e.ImageInspect(t.Context(), name); err != nil {
			required(t, "image %s, of %s: %v", name, imagesVariable, err)
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
		several = append(several, backend{"containers", c, c})
	}
	return several
}
