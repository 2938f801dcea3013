package sleep

import (
	"context"
	"time"
)

// For waits for a duration. If ctx ends first, it returns the error of ctx.
func For(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
