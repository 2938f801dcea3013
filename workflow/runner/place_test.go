package runner_test

import (
	"context"
	"testing"
	"time"

	"scute.dev/internal/supervise"
)

// TestAFreePlaceWakesTheDriver also when it becomes free after the driver has asked for it, and before it sleeps. Here no time ever passes.
func TestAFreePlaceWakesTheDriver(t *testing.T) {
	w := newWorld(t)
	r := w.process("one", nil)
	r.Places = supervise.NewPlaces(1)
	other := r.Places.Place("") // of the namespace of the run
	<-other.Ask()
	r.After = func(time.Duration) <-chan time.Time {
		other.Give() // it is about to sleep
		return nil
	}
	w.request("tasks: [{name: a, kind: Do}]")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.Drive(ctx, id); err != nil {
		t.Fatal(err)
	}
	w.want("Succeeded a=Succeeded")
}
