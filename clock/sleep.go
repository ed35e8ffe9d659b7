package clock

import (
	"context"
	"time"
)

// Sleep waits until d has gone by on c, or ctx is done. It returns ctx's error
// in the second case, and at once if ctx is done already.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
