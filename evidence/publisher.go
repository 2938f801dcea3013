package evidence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"k8s.io/apimachinery/pkg/util/wait"

	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

const (
	// publishTimeout limits the publication to one destination, including retries. If it passes, no
	// commit is lost: a later checkpoint covers the same commits.
	publishTimeout = 20 * time.Second
	// maxSeals limits how often the log is sealed again in one publication because a destination has a
	// newer checkpoint.
	maxSeals = 3
	// recheckInterval is the interval between complete checks of the sealed log.
	recheckInterval = 24 * time.Hour
)

const violationRemedy = "keep a copy of the log's volume and of the checkpoints, find out what differs with `scutectl audit verify`, and restore the log; see docs/audit.md"

// Log is the log that is sealed.
type Log = seal.Log

// Publisher seals a log on a schedule and publishes its checkpoints.
type Publisher struct {
	Log          Log
	Sealer       *seal.Sealer
	Key          seal.PublicKey
	Dir          string // the folder of the Sealer
	Destinations []Destination
	// Alarm is called for a violation (violated is true), and for an error of publishing. It is called
	// again only if the error changes.
	Alarm func(violated bool, err error)

	mu     sync.Mutex
	sealed seal.Checkpoint
	state  map[string]State
}

// State is the state of a destination, of the sealing, or of the log.
type State struct {
	// Size is the last published sequence, and At is the time of its publication.
	Size uint64
	At   time.Time
	// Violated is true if the log differs from the sealed commits.
	Violated bool
	Err      error
}

// Names under which States returns the state of the sealing and the state of the log.
const (
	SealState = "seal"
	logState  = "log"
)

// Run seals the log and publishes a checkpoint at once, and then at each interval, until ctx ends.
// It also compares the whole log with the sealed commits, at once and then every day.
func (p *Publisher) Run(ctx context.Context, interval time.Duration) {
	p.Publish(ctx)
	var checking sync.WaitGroup
	defer checking.Wait()
	checking.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if err := p.recheck(ctx); ctx.Err() == nil {
				p.recordState(logState, State{Violated: errors.Is(err, errInconsistent) || errors.Is(err, eventlog.ErrGap), Err: err})
			}
		}, recheckInterval)
	})
	_ = wait.PollUntilContextCancel(ctx, interval, false, func(ctx context.Context) (bool, error) { // fails when ctx has ended
		p.Publish(ctx)
		return false, nil
	})
}

// Publish seals the log as it is now, and publishes the checkpoint to each destination.
func (p *Publisher) Publish(ctx context.Context) {
	publication, ok := p.seal(ctx)
	if !ok {
		return
	}
	for _, destination := range p.Destinations {
		err := publish(ctx, destination, publication)
		for tries := 0; tries < maxSeals && errors.Is(err, errInconsistent); tries++ {
			// A new leader may have published a checkpoint that covers commits that this process has not
			// sealed yet. The log contains these commits.
			again, ok := p.seal(ctx)
			if !ok || again.Size == publication.Size {
				break
			}
			publication = again
			err = publish(ctx, destination, publication)
		}
		switch {
		case err == nil:
			p.recordState(destination.Name(), State{Size: publication.Size, At: publication.At})
		case ctx.Err() == nil:
			p.recordState(destination.Name(), State{Violated: errors.Is(err, errInconsistent), Err: fmt.Errorf("publishing a checkpoint to %s: %w", destination.Name(), err)})
		}
	}
}

func (p *Publisher) seal(ctx context.Context) (publication Publication, ok bool) {
	c, signed, err := p.Sealer.Seal(ctx)
	if err != nil {
		if ctx.Err() == nil {
			p.recordState(SealState, State{Violated: errors.Is(err, eventlog.ErrGap), Err: err})
		}
		return publication, false
	}
	p.recordState(SealState, State{Size: c.Size, At: time.Now()})
	p.mu.Lock()
	p.sealed = c
	p.mu.Unlock()
	return Publication{Checkpoint: c, Signed: signed, Key: p.Key, At: time.Now(), Tree: p.Sealer.Tree()}, true
}

// publish publishes a checkpoint to one destination. It does nothing if the destination already has
// the checkpoint. It returns an error if the destination has a checkpoint that is inconsistent with
// it.
func publish(ctx context.Context, destination Destination, p Publication) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxElapsedTime(publishTimeout))
	return backoff.Retry(func() error {
		last, err := destination.Last(ctx)
		if err != nil {
			return err
		}
		same, err := checkPublication(p, last)
		if err != nil {
			return backoff.Permanent(err)
		}
		if same {
			return nil
		}
		if err = destination.Publish(ctx, p); errors.Is(err, errInconsistent) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(b, ctx))
}

// recheck compares the whole log with the sealed commits. If they differ, the error names the
// differences and wraps errInconsistent.
func (p *Publisher) recheck(ctx context.Context) error {
	p.mu.Lock()
	want := p.sealed
	p.mu.Unlock()
	if want.Size == 0 {
		return nil
	}
	tree, err := seal.ReadTree(p.Dir)
	if err != nil {
		return err
	}
	defer tree.Close()
	v := seal.NewVerifier(want, nil, tree)
	if _, err := p.Log.Replay(ctx, 0, v.Add); err != nil {
		return fmt.Errorf("reading what was sealed: %w", err)
	}
	report, err := v.Report()
	if err != nil || report.Intact() {
		return err
	}
	return fmt.Errorf("%w: %s (1 of %d findings)", errInconsistent, report.Findings[0], len(report.Findings))
}

// recordState stores a state. If the state has an error that it did not have before, recordState
// calls Alarm.
func (p *Publisher) recordState(name string, s State) {
	p.mu.Lock()
	if p.state == nil {
		p.state = make(map[string]State)
	}
	before := p.state[name]
	if s.Err != nil {
		s.Size, s.At = before.Size, before.At
	}
	p.state[name] = s
	p.mu.Unlock()
	if s.Err == nil || before.Err != nil && before.Err.Error() == s.Err.Error() || p.Alarm == nil {
		return
	}
	if s.Violated {
		s.Err = fmt.Errorf("%w; %s", s.Err, violationRemedy)
	}
	p.Alarm(s.Violated, s.Err)
}

// States returns the states of the log, of the sealing and of each destination.
func (p *Publisher) States() map[string]State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.state)
}
