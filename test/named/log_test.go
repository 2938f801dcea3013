package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/test/harness"
	"scute.dev/workflow"
)

// facts returns all events of the run.
func (s *session) facts(ctx context.Context) []workflow.Event {
	s.t.Helper()
	log, err := embedded.Open(ctx, embedded.Options{Dir: s.log()})
	harness.Must(s.t, err)
	defer log.Close()
	catalog := workflow.NewCatalog()
	var facts []workflow.Event
	_, err = log.Replay(ctx, 0, func(r eventlog.Record) error {
		if r.Aggregate.Kind != eventlog.KindRun {
			return nil
		}
		events, err := r.Events()
		if err != nil {
			return err
		}
		for _, e := range events {
			fact, err := catalog.Decode(e)
			if err != nil {
				return err
			}
			facts = append(facts, fact)
		}
		return nil
	})
	harness.Must(s.t, err)
	return facts
}

// checkOnce checks that every task of the list succeeded once, in this order, and was not started again afterwards, and
// that only the tasks in again were started more than once.
func (s *session) checkOnce(ctx context.Context, tasks, again string) {
	s.t.Helper()
	done := map[string]bool{}
	starts := map[string]int{}
	var order, twice []string
	for _, fact := range s.facts(ctx) {
		switch f := fact.(type) {
		case workflow.TaskStarted:
			key := f.Task + " " + f.Step
			if starts[key]++; done[key] {
				s.t.Errorf("step %q was started again after it had succeeded", key)
			}
			if starts[key] == 2 && !slices.Contains(twice, f.Task) {
				twice = append(twice, f.Task)
			}
		case workflow.StepSucceeded:
			done[f.Task+" "+f.Step] = true
		case workflow.TaskSucceeded:
			done[f.Task+" "+f.Step] = true
			order = append(order, f.Task)
		}
	}
	if want := strings.Fields(tasks); !slices.Equal(order, want) {
		s.t.Errorf("the tasks that succeeded are %v, want %v", order, want)
	}
	if want := strings.Fields(again); !slices.Equal(twice, want) {
		s.t.Errorf("the tasks that were started more than once are %v, want %v", twice, want)
	}
}

// checkSecrets checks that the log of a run contains no kubeconfig.
func (s *session) checkSecrets(ctx context.Context) {
	s.t.Helper()
	for _, fact := range s.facts(ctx) {
		text := fmt.Sprintf("%s", fact)
		for _, secret := range []string{"client-key-data", "client-certificate-data", "PRIVATE KEY", "LS0tLS1CRUdJTi"} {
			if strings.Contains(text, secret) {
				s.t.Errorf("the log holds %s in %T", secret, fact)
			}
		}
	}
}
