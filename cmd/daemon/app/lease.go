package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"scute.dev/eventlog"
	"scute.dev/internal/trust"
)

const (
	// leaseTimeout bounds one request about the Lease.
	leaseTimeout = 5 * time.Second
	// offerAfter is how long the holder of the Lease does not reach the log before it offers the Lease. Most interruptions of a server are
	// shorter.
	offerAfter = time.Minute
)

var errLeft = errors.New("the event log cannot be reached, and another process that reaches it asks for the Lease")

// lease is the Lease of leader election. Its holder writes the high-water mark of the log into it, at each renewal and by
// raise, so that the mark costs no separate request.
type lease struct {
	client coordination.LeaseInterface
	// holder is whose Lease it is; logID and installation say who that is. The processes that were before are known to have ended.
	holder, logID, installation string
	before                      []string
	// head is the highest sequence that the log has acknowledged to this process.
	head func() uint64
	// tenure is told of each renewal.
	tenure *tenure
	// health is of the log; nil is always well.
	health func(ctx context.Context) error

	mu   sync.Mutex
	last *coordinationv1.Lease // as it was read or written last
	// lost: it is another's as it was read last, and leader election has not seen that yet.
	lost bool
	// trusted: the log was found to be the one of the mark, so the mark may be raised.
	trusted bool
	// reconciled is when an operator reconciled the trusted log for the last time; "" is never.
	reconciled string
	// away is since when the log cannot be reached; zero is not. left: another process reaches it, and this one gives up the Lease for that.
	away time.Time
	left bool
}

// Get implements resourcelock.Interface.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(ctx); err != nil {
		return nil, nil, err
	}
	l.lost = false
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&l.last.Spec)
	switch by := l.last.Annotations; {
	case slices.Contains(l.before, record.HolderIdentity):
		record.HolderIdentity = ""
	case !l.holds() && record.HolderIdentity != "" && by[trust.OfferedAnnotation] == record.HolderIdentity && by[trust.HolderLogAnnotation] == l.logID:
		l.want(ctx)
	}
	raw, err := json.Marshal(record)
	return record, raw, err
}

// want asks the holder of the Lease, which cannot reach the log, for it, if this process can. It is asked again at the next look.
func (l *lease) want(ctx context.Context) {
	if l.last.Annotations[trust.WantedAnnotation] == *l.last.Spec.HolderIdentity || l.reach(ctx) != nil {
		return
	}
	asking := l.last.DeepCopy()
	asking.Annotations[trust.WantedAnnotation] = *asking.Spec.HolderIdentity
	if written, err := l.client.Update(ctx, asking, metav1.UpdateOptions{}); err == nil {
		l.last = written
	}
}

// leave gives up the Lease for a process that asked for it, if the log is away still: nothing is done from now on, and the Lease is not renewed,
// so that leader election ends this process.
func (l *lease) leave() {
	if l.isAway() && l.last.Annotations[trust.WantedAnnotation] == l.holder {
		l.left = true
		l.tenure.begin()(0)
	}
}

func (l *lease) reach(ctx context.Context) error {
	if l.health == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	return l.health(ctx)
}

// mind looks whether the log can be reached. All other processes wait for the one that holds the Lease, so it offers the Lease to one that
// reaches the log when it has not for a while.
func (l *lease) mind(ctx context.Context, logger *slog.Logger) error {
	tick := time.NewTicker(minded)
	defer tick.Stop()
	for said := false; ; {
		err := l.reach(ctx)
		if ctx.Err() != nil {
			return nil
		}
		away := l.noted(errors.Is(err, eventlog.ErrUnavailable))
		if away && !said {
			logger.Warn("the event log cannot be reached: a process that reaches it may have the Lease", "error", err)
		}
		said = away
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// noted notes whether the log is away, and says whether it has been for too long.
func (l *lease) noted(away bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !away {
		l.away = time.Time{}
	} else if l.away.IsZero() {
		l.away = time.Now()
	}
	return l.isAway()
}

func (l *lease) isAway() bool { return !l.away.IsZero() && time.Since(l.away) >= offerAfter }

func (l *lease) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	found, err := l.client.Get(ctx, trust.LeaseName, metav1.GetOptions{})
	if err == nil {
		l.last = found
		if l.lost = !l.holds(); !l.lost {
			l.leave()
		}
	}
	// A Lease that somebody deleted or edited can be another process's before this one's would have expired.
	if err == nil && !l.holds() || apierrors.IsNotFound(err) {
		l.tenure.begin()(0)
	}
	return err
}

// Create implements resourcelock.Interface.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	made := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: trust.LeaseName, Namespace: trust.LeaseNamespace},
		Spec:       resourcelock.LeaderElectionRecordToLeaseSpec(&record),
	}
	if l.left {
		return errLeft
	}
	l.annotate(made)
	written := l.tenure.begin()
	made, err := l.client.Create(ctx, made, metav1.CreateOptions{})
	if err == nil {
		l.last = made
		written(l.lasts(made.Spec))
	}
	return err
}

// Update implements resourcelock.Interface. Leader election gives the Lease up as it reads it then, and after a renewal that failed
// that can be the Lease of another process: it is left alone. From then on this process does nothing, whatever the answer is. It renews the Lease
// without reading it, and that would take the Lease of another process if only the mark was to be raised since.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case record.HolderIdentity != l.holder:
		l.tenure.begin()(0)
		if !l.holds() {
			return fmt.Errorf("giving up Lease %s/%s: another process holds it", trust.LeaseNamespace, trust.LeaseName)
		}
	case l.lost:
		return fmt.Errorf("renewing Lease %s/%s: another process holds it", trust.LeaseNamespace, trust.LeaseName)
	case l.left:
		return errLeft
	}
	return l.update(ctx, resourcelock.LeaderElectionRecordToLeaseSpec(&record))
}

// holds says that the Lease was this process's own when it was read or written last.
func (l *lease) holds() bool {
	return l.last != nil && l.last.Spec.HolderIdentity != nil && *l.last.Spec.HolderIdentity == l.holder
}

// update writes the Lease as it was seen last, with the mark: it fails when somebody else wrote it meanwhile.
func (l *lease) update(ctx context.Context, spec coordinationv1.LeaseSpec) error {
	if l.last == nil {
		return errors.New("the Lease was not read yet")
	}
	next := l.last.DeepCopy()
	next.Spec = spec
	l.annotate(next)
	written := l.tenure.begin()
	next, err := l.client.Update(ctx, next, metav1.UpdateOptions{})
	if err == nil {
		l.last = next
		written(l.lasts(next.Spec))
	}
	return err
}

// lasts is how long this process holds a Lease that it has written now: not at all when it has given it up.
func (l *lease) lasts(spec coordinationv1.LeaseSpec) time.Duration {
	if spec.LeaseDurationSeconds == nil || spec.HolderIdentity == nil || *spec.HolderIdentity != l.holder || l.left {
		return 0
	}
	return time.Duration(*spec.LeaseDurationSeconds) * time.Second
}

// annotate says who holds the Lease and, once the log is trusted, how far it is.
func (l *lease) annotate(o *coordinationv1.Lease) {
	if o.Annotations == nil {
		o.Annotations = make(map[string]string)
	}
	o.Annotations[trust.InstallationAnnotation], o.Annotations[trust.HolderLogAnnotation] = l.installation, l.logID
	delete(o.Annotations, trust.OfferedAnnotation)
	delete(o.Annotations, trust.WantedAnnotation)
	if l.isAway() {
		o.Annotations[trust.OfferedAnnotation] = l.holder
	}
	if !l.trusted {
		return
	}
	l.noteReconciled(o)
	mark := trust.Mark{LogID: l.logID, Sequence: l.head()}
	if old := trust.MarkOf(o.Annotations); old.LogID == mark.LogID && old.Sequence > mark.Sequence {
		return
	}
	trust.WriteMark(o.Annotations, mark)
}

func (l *lease) noteReconciled(o *coordinationv1.Lease) {
	if l.reconciled == "" {
		delete(o.Annotations, trust.ReconciledAnnotation)
	} else {
		o.Annotations[trust.ReconciledAnnotation] = l.reconciled
	}
}

// mark is what was kept outside the log when this process became the holder, and when the log that acted last was reconciled.
func (l *lease) mark(ctx context.Context) (mark trust.Mark, reconciled string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(ctx); err != nil {
		return mark, "", fmt.Errorf("reading the log's high-water mark from Lease %s/%s: %w", trust.LeaseNamespace, trust.LeaseName, err)
	}
	return trust.MarkOf(l.last.Annotations), l.last.Annotations[trust.ReconciledAnnotation], nil
}

// follow lets the mark follow this log from now on, and sets it to the log's head, be that lower than it was. The log was reconciled at a
// time, or never.
func (l *lease) follow(ctx context.Context, head uint64, reconciled string) error {
	return l.write(ctx, func(o *coordinationv1.Lease) bool {
		trust.WriteMark(o.Annotations, trust.Mark{LogID: l.logID, Sequence: head})
		l.trusted, l.reconciled = true, reconciled
		l.noteReconciled(o)
		return true
	})
}

// raise writes the mark now, if it is lower than seq. It is written as high as the log is by then: a process that starts claims
// everything at once, and a renewal that had to wait for one write a claim would come too late.
func (l *lease) raise(ctx context.Context, seq uint64) error {
	return l.write(ctx, func(o *coordinationv1.Lease) bool {
		old := trust.MarkOf(o.Annotations)
		if !l.trusted || old.LogID == l.logID && old.Sequence >= seq {
			return false
		}
		trust.WriteMark(o.Annotations, trust.Mark{LogID: l.logID, Sequence: max(seq, l.head())})
		return true
	})
}

// write alters the Lease while this process holds it. One that somebody else wrote since it was read is read again.
func (l *lease) write(ctx context.Context, alter func(*coordinationv1.Lease) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		err := l.tryWrite(ctx, alter)
		if !apierrors.IsConflict(err) {
			return err
		}
		if err := l.read(ctx); err != nil {
			return fmt.Errorf("reading Lease %s/%s: %w", trust.LeaseNamespace, trust.LeaseName, err)
		}
	}
}

func (l *lease) tryWrite(ctx context.Context, alter func(*coordinationv1.Lease) bool) error {
	if !l.holds() {
		return fmt.Errorf("raising the log's high-water mark: this process does not hold Lease %s/%s", trust.LeaseNamespace, trust.LeaseName)
	}
	next := l.last.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = make(map[string]string)
	}
	if !alter(next) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	next, err := l.client.Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("raising the log's high-water mark in Lease %s/%s: %w", trust.LeaseNamespace, trust.LeaseName, err)
	}
	l.last = next
	return nil
}

// other says that another installation acts on this management cluster, with another log.
func (l *lease) other(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		return nil
	}
	spec, by := l.last.Spec, l.last.Annotations
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || *spec.HolderIdentity == l.holder || by[trust.HolderLogAnnotation] == "" || by[trust.HolderLogAnnotation] == l.logID {
		return nil
	}
	if spec.RenewTime != nil && spec.LeaseDurationSeconds != nil && now.Sub(spec.RenewTime.Time) > time.Duration(*spec.LeaseDurationSeconds)*time.Second {
		return nil // it is gone
	}
	return fmt.Errorf("another installation of scute acts on this management cluster: namespace %s, event log %s; this one, namespace %s, event log %s, does nothing: uninstall one of the two",
		by[trust.InstallationAnnotation], by[trust.HolderLogAnnotation], l.installation, l.logID)
}

// RecordEvent implements resourcelock.Interface.
func (l *lease) RecordEvent(string) {}

// Identity implements resourcelock.Interface.
func (l *lease) Identity() string { return l.holder }

// Describe implements resourcelock.Interface.
func (l *lease) Describe() string { return trust.LeaseNamespace + "/" + trust.LeaseName }
