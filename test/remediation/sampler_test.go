package remediation

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"scute.dev/test/cloud"
)

// sample is one observation of a control plane.
type sample struct {
	voters, answering int // members of etcd, as the cloud reports them
	machines, ready   int // Machines of the control plane
	// unserved means that no API server answers, or no majority of etcd.
	unserved bool
}

func (s sample) String() string {
	text := fmt.Sprintf("%d of %d members answer, %d of %d machines ready", s.answering, s.voters, s.ready, s.machines)
	if s.unserved {
		text += ", the API server is unavailable"
	}
	return text
}

// sampler observes a control plane frequently, so that it misses no state that lasts.
type sampler struct {
	c      *cluster
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	count    int
	least    sample // the least of each number
	most     int    // the most machines
	timeline []string
	last     sample
	broken   error
}

// sampleEvery is the sampling interval. Machines are sampled once a second.
const sampleEvery = 100 * time.Millisecond

// watchQuorum samples until the test ends, and prints the samples.
func (c *cluster) watchQuorum(t *testing.T) *sampler {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &sampler{c: c, cancel: cancel, done: make(chan struct{})}
	started := time.Now()
	go func() {
		defer close(s.done)
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for i := 0; ; i++ {
			s.take(ctx, started, i%10 == 0)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	t.Cleanup(func() {
		s.stop()
		t.Logf("%s", s)
	})
	return s
}

func (s *sampler) stop() {
	s.cancel()
	<-s.done
}

func (s *sampler) take(ctx context.Context, started time.Time, machines bool) {
	members, err := shared.bed.Cloud().Etcd(ctx, s.c.Namespace+"/"+s.c.Name)
	now := s.last
	now.voters, now.answering = len(members), 0
	for _, m := range members {
		if m.Answers {
			now.answering++
		}
	}
	now.unserved = !shared.bed.Cloud().Served(s.c.Namespace+"/"+s.c.Name) || !s.c.spec.ExternalEtcd && !cloud.Quorum(members)
	if machines && err == nil {
		var list []clusterv1.Machine
		list, err = s.c.list(ctx, true)
		now.machines, now.ready = len(list), 0
		for i := range list {
			if conditions.IsTrue(&list[i], clusterv1.MachineNodeHealthyCondition) {
				now.ready++
			}
		}
	}
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.broken = err
		return
	}
	if s.count++; s.count == 1 {
		s.least = now
	} else {
		s.least = sample{
			voters: min(s.least.voters, now.voters), answering: min(s.least.answering, now.answering),
			machines: min(s.least.machines, now.machines), ready: min(s.least.ready, now.ready),
			unserved: s.least.unserved || now.unserved,
		}
	}
	s.most = max(s.most, now.machines)
	if now != s.last || s.count == 1 {
		s.timeline = append(s.timeline, fmt.Sprintf("%6.1f s: %s", time.Since(started).Seconds(), now))
	}
	s.last = now
}

// answering returns the least number of members that answered so far.
func (s *sampler) answering() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.least.answering
}

// unserved reports whether the API server was unavailable at some time.
func (s *sampler) unserved() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.least.unserved
}

// machinesAtMost returns the highest number of machines so far.
func (s *sampler) machinesAtMost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

func (s *sampler) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("%s/%s: members that answer: never below %d; machines: %d to %d, ready: never below %d (samples: %d)\n  %s",
		s.c.Namespace, s.c.Name, s.least.answering, s.least.machines, s.most, s.least.ready, s.count, strings.Join(s.timeline, "\n  "))
	if s.broken != nil {
		text += "\n  a look failed: " + s.broken.Error()
	}
	return text
}

// never fails the test if fewer members answered or more machines existed at some time.
func (s *sampler) never(t *testing.T, fewerMembers, moreMachines int) {
	t.Helper()
	if got := s.answering(); got < fewerMembers {
		t.Errorf("%d members answered at some time, want at least %d", got, fewerMembers)
	}
	if got := s.machinesAtMost(); got > moreMachines {
		t.Errorf("%d machines existed at some time, want at most %d", got, moreMachines)
	}
}
