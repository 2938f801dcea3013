package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/internal/supervise"
)

// harmlessEvents are types of events that do not change what a run does. They need no adoption
// unless they contain inputs or an output.
var harmlessEvents = []string{
	"paused", "resumed", "aborted", "rollback-started", "ended", "task-paused", "task-released", "edge-expired", "decided",
}

// Digest returns a digest of what clients wrote into a run: its definition, inputs or outputs.
// before is the digest of all events before e. The digest is "" if only resources and the daemon
// wrote events.
func Digest(before string, e eventlog.Event) string {
	if !eventlog.Unverified(e.Actor) {
		return before
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(e.Type, "dev.scute.run."), ".v")
	var brings struct{ Output, With json.RawMessage }
	if err := json.Unmarshal(e.Data, &brings); err == nil && slices.Contains(harmlessEvents, name) && brings.Output == nil && brings.With == nil {
		return before
	}
	sum := sha256.Sum256([]byte(before + "\n" + e.Type + "\n" + string(e.Data)))
	return hex.EncodeToString(sum[:])
}

// AdoptCommand returns the kubectl command that adopts the events that clients wrote into a run. It
// requires permission to get and patch the WorkflowRun.
func AdoptCommand(namespace, name, digest string) string {
	return fmt.Sprintf("kubectl -n %s annotate workflowruns.scute.dev %s --overwrite %s=%s", namespace, name, v1alpha1.AdoptedAnnotation, digest)
}

// adoptionThrottle returns why a run is not driven. A run is not driven if clients that no API
// server authenticated wrote into it, and its WorkflowRun has not adopted the result.
func (r *Runner) adoptionThrottle(ctx context.Context, id string, a *run) (supervise.Throttled, error) {
	if r.Adopted == nil || a.digest == "" {
		return supervise.Throttled{}, nil
	}
	if !strings.HasPrefix(id, a.State.Namespace+"/"+a.State.Name+"/") { // the definition names another namespace than the ID
		return supervise.Throttled{Reason: supervise.NotAdopted, Message: fmt.Sprintf(
			"not driven: a client wrote to the log that its tasks act as run %s/%s, which its WorkflowRun cannot adopt: abort the run", a.State.Namespace,
			a.State.Name)}, nil
	}
	adopted, err := r.Adopted(ctx, id)
	if err != nil || adopted == a.digest {
		return supervise.Throttled{}, err
	}
	return supervise.Throttled{Reason: supervise.NotAdopted, Message: "not driven: a client wrote its definition, inputs or outputs to the log, " +
		"and its WorkflowRun has not adopted them: review them: `scutectl log tail --aggregate run/" + id + "`, then abort the run, or adopt them: " +
		AdoptCommand(a.State.Namespace, a.State.Name, a.digest)}, nil
}

func (r *Runner) awaitAdoption(ctx context.Context, id string, a *run, news <-chan uint64) error {
	for told := false; ; told = true {
		why, err := r.adoptionThrottle(ctx, id, a)
		if err != nil || why == (supervise.Throttled{}) {
			return err
		}
		if r.Throttle(id, why); !told {
			r.Logger.Warn("a run is not driven", "run", id, "reason", why.Message)
		}
		if err := r.Sleep(ctx, adoptionInterval, news, a.Seq); err != nil {
			return err
		}
		if err := retry(ctx, func() error { return a.Read(ctx) }); err != nil {
			return err
		}
	}
}

const adoptionInterval = 2 * time.Second
