package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/remediator"
)

// reading is the daemon's usage so far, or between two readings.
type reading struct {
	usage
	log      float64 // MiB of the event log's folder
	requests *requests
}

func (o *outage) reading() (r reading, err error) {
	if err := o.daemon.Exited(); err != nil {
		return r, err
	}
	if r.usage, err = usageOf(o.daemon.PID()); err != nil {
		return r, err
	}
	if r.requests, err = requestsSince(o.side.AuditLog(), 0); err != nil {
		return r, err
	}
	err = filepath.WalkDir(o.logDir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && e.IsDir() {
			return nil // a file that was deleted after its folder was read
		}
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			r.log += float64(info.Size()) / (1 << 20)
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
	return r, err
}

// since returns the usage after an earlier reading.
func (r reading) since(before reading) reading {
	r.cpu -= before.cpu
	r.log -= before.log
	all := &requests{
		watches: r.requests.watches - before.requests.watches, leases: r.requests.leases - before.requests.leases,
		other: r.requests.other - before.requests.other, by: maps.Clone(r.requests.by),
	}
	for what, n := range before.requests.by {
		if all.by[what] -= n; all.by[what] == 0 {
			delete(all.by, what)
		}
	}
	r.requests = all
	return r
}

func (r reading) String() string {
	return fmt.Sprintf("%.1f s of CPU, %.2f MiB of log, %.0f MiB of memory (%.0f at most), and %s",
		r.cpu.Seconds(), r.log, r.resident, r.peak, r.requests)
}

// record is the content of the log.
type record struct {
	decisions int
	started   map[string]int // remediations started, by the machine's failure domain
	seen      bool           // the failure of the domain was detected
	late      int            // remediations started there after that
}

// begins counts a remediation of a machine in a failure domain.
func (r *record) begins(domain string) {
	r.started[domain]++
	if domain == failing && r.seen {
		r.late++
	}
}

func (r *record) begun() int {
	n := 0
	for _, count := range r.started {
		n += count
	}
	return n
}

// check checks that no limit of the fleet was exceeded. No remediation has ended, so all of them are in progress at
// once.
func (r *record) check(atOnce, ofDomain int) error {
	if n := r.begun(); n == 0 || n > atOnce {
		return fmt.Errorf("%d remediations were begun, want 1 to %d", n, atOnce)
	}
	for domain, n := range r.started {
		if n > ofDomain {
			return fmt.Errorf("%d remediations were begun in failure domain %q, want at most %d", n, domain, ofDomain)
		}
	}
	if !r.seen || r.late > 0 {
		return fmt.Errorf("failure domain %q was found to fail: %t; %d remediations were begun there after that", failing, r.seen, r.late)
	}
	return nil
}

// readRecord reads the log of a stopped daemon.
func readRecord(ctx context.Context, dir string) (*record, error) {
	log, err := embedded.Open(ctx, embedded.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	defer log.Close()
	r, catalog, where := &record{started: make(map[string]int)}, remediator.NewCatalog(), make(map[types.UID]string)
	_, err = log.Replay(ctx, 0, func(commit eventlog.Record) error {
		if commit.Aggregate.Kind != eventlog.KindRemediation {
			return nil
		}
		events, err := commit.Events()
		if err != nil {
			return err
		}
		for _, stored := range events {
			e, err := catalog.Decode(stored)
			if err != nil {
				return err
			}
			switch e := e.(type) {
			case remediator.MachineMarked:
				where[e.Machine.UID] = e.FailureDomain
			case remediator.Decided:
				r.decisions++
				r.seen = r.seen || e.Decision.Domain == failing
			case remediator.SurgeRequested:
				r.begins(where[e.Machine.UID])
			case remediator.HandedOver:
				r.begins(where[e.Machine.UID])
			}
		}
		return nil
	})
	return r, err
}
