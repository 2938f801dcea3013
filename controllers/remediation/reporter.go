package remediation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/controllers/resource"
	"scute.dev/remediator/ownerkind"
	"scute.dev/remediator/runner"
)

const (
	// maxEventAge is the maximum age of an event of the log that is reported. The previous daemon
	// has reported older events, or nobody needs them any more.
	maxEventAge = 10 * time.Minute
	// maxQueued limits the reports in the queue. If a mass failure causes more, the oldest reports
	// are dropped.
	maxQueued = 2000
	// maxRepeats bounds the events of one topic within maxEventAge.
	maxRepeats = 3
	// eventsPerSecond and eventBurst limit requests to the API server.
	eventsPerSecond, eventBurst = 20, 100
	retryInterval               = time.Second
)

// EventReporter creates a Kubernetes event for each fact in the log that users are notified of. The
// event's name derives from the fact's position in the log, so a daemon that reads the fact again
// creates no second event.
type EventReporter struct {
	logID, instance string // the ID of the log, the name of this process
	logger          *slog.Logger
	waiting         chan runner.Report

	mu       sync.Mutex
	lost     int
	reported map[topic][]time.Time
	swept    time.Time
}

// NewEventReporter returns a reporter that queues reports until Run.
func NewEventReporter(logID, instance string, logger *slog.Logger) *EventReporter {
	return &EventReporter{logID: logID, instance: instance, logger: logger, waiting: make(chan runner.Report, maxQueued), reported: make(map[topic][]time.Time)}
}

// Since returns the time from which the reporter needs the facts in the log. Facts older than
// maxEventAge are not reported, but they count toward maxRepeats.
func (*EventReporter) Since() time.Time { return time.Now().Add(-2 * maxEventAge) }

type topic struct {
	about  types.UID // a machine, or its owner if there is no machine
	reason string
}

// Report queues a report. It does not block.
func (t *EventReporter) Report(n runner.Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.Machine.Name == "" && !n.Notification.Owner || !t.shouldReport(n) || time.Since(n.At) > maxEventAge {
		return
	}
	for {
		select {
		case t.waiting <- n:
			return
		default:
		}
		select {
		case <-t.waiting: // the oldest
			t.lost++
		default:
		}
	}
}

// shouldReport counts an event and reports whether the topic had fewer than maxRepeats recently. It
// uses the times of the log, so that the same events are skipped when the log is read again. The
// caller holds mu.
func (t *EventReporter) shouldReport(n runner.Report) bool {
	if n.At.Sub(t.swept) > maxEventAge { // keep the map small
		for key, times := range t.reported {
			if n.At.Sub(times[len(times)-1]) > maxEventAge {
				delete(t.reported, key)
			}
		}
		t.swept = n.At
	}
	key := topic{about: cmp.Or(n.Machine.UID, n.Owner.UID), reason: n.Reason}
	times := t.reported[key]
	for len(times) > 0 && n.At.Sub(times[0]) > maxEventAge {
		times = times[1:]
	}
	if len(times) >= maxRepeats {
		return false
	}
	t.reported[key] = append(times, n.At)
	return true
}

// Run creates the events in the order of the log until ctx ends.
func (t *EventReporter) Run(ctx context.Context, c client.Client) {
	limit := flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventBurst)
	defer limit.Stop()
	for {
		var n runner.Report
		select {
		case <-ctx.Done():
			return
		case n = <-t.waiting:
		}
		t.logLost()
		if time.Since(n.At) > maxEventAge {
			continue
		}
		for _, e := range t.events(n) {
			if limit.Wait(ctx) != nil {
				return
			}
			_ = wait.PollUntilContextTimeout(ctx, retryInterval, maxEventAge-time.Since(n.At), true, func(ctx context.Context) (bool, error) {
				return t.create(ctx, c, e), nil
			}) // ignore the error: the log has the fact
		}
	}
}

func (t *EventReporter) logLost() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost > 0 {
		t.logger.Warn("too many events at once: some have no Kubernetes event; the log has them", "facts", t.lost)
		t.lost = 0
	}
}

// create creates a Kubernetes event. It returns false if that must be retried. It skips an event
// that the API server rejects, because the log contains the fact.
func (t *EventReporter) create(ctx context.Context, c client.Client, e *eventsv1.Event) (done bool) {
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	err := c.Create(ctx, e.DeepCopy())
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return true
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsBadRequest(err), meta.IsNoMatchError(err):
		t.logger.Warn("a Kubernetes event was rejected; the log has the event", "about", e.Regarding.Name, "reason", e.Reason, "error", err)
		return true
	default:
		return false
	}
}

func (t *EventReporter) events(n runner.Report) []*eventsv1.Event {
	machine := corev1.ObjectReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Namespace: n.Owner.Namespace, Name: n.Machine.Name, UID: n.Machine.UID,
	}
	kind, _ := ownerkind.Named(n.Owner.Kind)
	owner := corev1.ObjectReference{
		APIVersion: kind.GroupVersion.String(), Kind: n.Owner.Kind, Namespace: n.Owner.Namespace, Name: n.Owner.Name, UID: n.Owner.UID,
	}
	known := owner.APIVersion != ""
	if n.Machine.Name == "" && !known {
		return nil
	}
	if n.Machine.Name == "" {
		e := t.event(n, owner, owner, n.Note)
		e.Related = nil
		return []*eventsv1.Event{e}
	}
	list := []*eventsv1.Event{t.event(n, machine, owner, n.Note)}
	if n.Notification.Owner && known {
		list = append(list, t.event(n, owner, machine, "Machine "+n.Machine.Name+": "+n.Note))
	}
	if !known {
		list[0].Related = nil
	}
	return list
}

func (t *EventReporter) event(n runner.Report, about, related corev1.ObjectReference, note string) *eventsv1.Event {
	kind := corev1.EventTypeNormal
	if n.Warning {
		kind = corev1.EventTypeWarning
	}
	sum := sha256.Sum256([]byte(t.logID + "/" + n.Owner.ID() + "/" + string(about.UID)))
	name := about.Name[:min(len(about.Name), 200)]
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: about.Namespace, Name: fmt.Sprintf("%s.%010x.%02x.%x", name, n.Seq, n.Index, sum[:4])},
		EventTime:  metav1.NewMicroTime(n.At), ReportingController: reportingController, ReportingInstance: cmp.Or(t.instance, reportingController),
		Action: "Remediate", Reason: n.Reason, Type: kind, Regarding: about, Related: &related, Note: resource.TruncateNote(note),
	}
}

const reportingController = "scuted"
