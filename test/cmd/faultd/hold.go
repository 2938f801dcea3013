package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// holds stop the moves of some namespaces, each at a write. After that, nothing of them is written, as if the process
// had been killed there. Moves of other namespaces continue to their own holds.
type holds struct {
	mu      sync.Mutex
	of      map[string]*hold
	journal io.Writer
}

// hold selects the write at which the moves of one namespace stop.
type hold struct {
	before bool
	left   int // matching writes that are still to come
	write  *regexp.Regexp
}

// newHolds parses one hold per line: NAMESPACE before|after N REGEXP.
func newHolds(lines string, journal io.Writer) (*holds, error) {
	h := &holds{of: make(map[string]*hold), journal: journal}
	for line := range strings.Lines(lines) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 4)
		if len(words) < 4 || words[1] != "before" && words[1] != "after" {
			return nil, fmt.Errorf("SCUTE_FAULT_HOLD has the line %q: it must be NAMESPACE before|after N REGEXP", line)
		}
		n, err := strconv.Atoi(words[2])
		if err != nil || n < 1 {
			return nil, fmt.Errorf("SCUTE_FAULT_HOLD has the line %q: %s must be a number from 1 on", line, words[2])
		}
		write, err := regexp.Compile(words[3])
		if err != nil {
			return nil, fmt.Errorf("SCUTE_FAULT_HOLD has the line %q: %w", line, err)
		}
		h.of[words[0]] = &hold{before: words[1] == "before", left: n, write: write}
	}
	return h, nil
}

// before waits until ctx ends if the move is held before the write that is about to be sent. after does the same after
// the write was done.
func (h *holds) before(ctx context.Context, namespace, what string) error {
	return h.stop(ctx, namespace, what, true)
}

func (h *holds) after(ctx context.Context, namespace, what string) error {
	return h.stop(ctx, namespace, what, false)
}

func (h *holds) stop(ctx context.Context, namespace, what string, before bool) error {
	if !h.held(namespace, what, before) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h *holds) held(namespace, what string, before bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.of[namespace]
	if at == nil {
		return false
	}
	if at.left > 0 && at.before == before && at.write.MatchString(what) {
		if at.left--; at.left == 0 {
			fmt.Fprintln(h.journal, "held", namespace, what)
			return true
		}
	}
	return at.left == 0 && before
}
