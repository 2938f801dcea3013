package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"scute.dev/eventlog"
	"scute.dev/test/soak"
)

// follow reads a side's log from its beginning, across all restarts of the daemon that serves it.
func (w *watcher) follow(ctx context.Context, on *side) {
	b := soak.NewBook(on.Side.Name())
	b.Unhealthy = w.world.ShouldBeUnhealthy
	w.player.mu.Lock()
	w.books[on.Side.Name()] = b
	w.player.mu.Unlock()
	for ctx.Err() == nil {
		err := w.connected(ctx, on, b)
		if ctx.Err() != nil {
			return
		}
		w.report.note("log", "%s: following it again: %v", on.Side.Name(), err)
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// connected follows the log over one connection.
func (w *watcher) connected(ctx context.Context, on *side, b *soak.Book) error {
	open, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	log, err := eventlog.Connect(open, eventlog.ExternalOptions{URL: "nats://" + on.keeper.options.Listen})
	if err != nil {
		return err
	}
	defer log.Close()
	following, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	w.player.mu.Lock()
	from := b.Last
	w.player.mu.Unlock()
	go func() { done <- log.Follow(following, from, func(r eventlog.Record) error { return w.record(b, r) }) }()
	for { // the head shows how far the log has been read
		asked := time.Now()
		head, err := log.Head(following)
		if err == nil {
			w.player.mu.Lock()
			read := b.Last >= head
			w.player.mu.Unlock()
			if read {
				w.mu.Lock()
				w.position[b.Side] = asked
				w.mu.Unlock()
			}
		}
		select {
		case err := <-done:
			return err
		case <-time.After(300 * time.Millisecond):
			if err != nil {
				stop()
				return fmt.Errorf("%w (%w)", err, <-done)
			}
		}
	}
}

func (w *watcher) record(b *soak.Book, r eventlog.Record) error {
	w.player.mu.Lock()
	begun := len(b.Remedies)
	lines, err := b.Apply(r)
	var fresh []soak.Remedy
	fresh = append(fresh, b.Remedies[begun:]...)
	w.player.mu.Unlock()
	for _, line := range lines {
		tell := w.report.note
		if r.Aggregate.Kind == eventlog.KindMove && soak.EndOfMove(line) {
			tell = w.report.say
		}
		tell("log", "%s: %s", b.Side, line)
	}
	for _, remedy := range fresh {
		spurious := ""
		if remedy.Spurious {
			spurious = ", though no fault is on it"
		}
		w.report.say("remedy", "the replacement of %s of %s has begun%s", remedy.Victim, remedy.Cluster, spurious)
	}
	if err != nil {
		w.violated(err)
	}
	return nil
}

// usage samples the resource usage of each daemon.
func (w *watcher) usage(ctx context.Context) {
	for _, one := range w.sides {
		u, err := scrape(ctx, one.metrics)
		if err != nil {
			continue // it is down
		}
		one.keeper.sampled(u)
	}
}

// scrape reads the usage from a daemon's metrics.
func scrape(ctx context.Context, address string) (soak.Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return soak.Usage{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return soak.Usage{}, err
	}
	defer response.Body.Close()
	u := soak.Usage{At: time.Now()}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch name {
		case "go_goroutines":
			u.Goroutines = int(n)
		case "go_memstats_heap_inuse_bytes":
			u.Heap = int(n)
		}
	}
	if u.Goroutines == 0 || u.Heap == 0 {
		return u, fmt.Errorf("reading the metrics at %s: no goroutines or no heap among them", address)
	}
	return u, lines.Err()
}
