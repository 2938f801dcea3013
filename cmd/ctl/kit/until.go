package kit

import (
	"context"
	"time"
)

// drawer shows a value repeatedly.
type drawer[T any] interface {
	Draw(T) error
	// Tick is called every second to update ages.
	Tick(T)
}

// followUntil follows a value until it is over, and draws each state. It returns the last state; ok is false if there was none. Only this goroutine draws,
// and follow waits while a state is drawn.
func followUntil[T any](ctx context.Context, follow func(context.Context, func(T) (enough bool)) error, over func(T) bool, draw drawer[T]) (last T, ok bool, err error) {
	states := make(chan T)
	drawn := make(chan struct{})
	ended := make(chan error, 1)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		ended <- follow(watching, func(t T) bool {
			enough := over(t)
			select {
			case states <- t:
				<-drawn
			case <-watching.Done():
				return true
			}
			return enough
		})
		close(ended)
	}()
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	for {
		select {
		case last = <-states:
			ok = true
			err := draw.Draw(last)
			if err != nil {
				stop()
			}
			drawn <- struct{}{}
			if err != nil {
				for range ended { // wait until the watch has ended
				}
				return last, ok, err
			}
		case <-clock.C:
			if ok {
				draw.Tick(last)
			}
		case err := <-ended:
			return last, ok, err
		}
	}
}
