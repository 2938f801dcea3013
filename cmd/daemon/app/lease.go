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
	"k8s.io/apimachinery/pkg/util/wait"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"scute.dev/eventlog"
	"scute.dev/internal/trust"
)

const (
	leaseTimeout = 5 * time.Second
	// offerAfter is how long the holder of the Lease must be unable to reach the log before it offers
	// the Lease to other processes. Most interruptions of a server are shorter.
	offerAfter = time.Minute
)

var errYielded = errors.New("the event log cannot be reached, and another process that can reach it requests the Lease")

// lease is the Lease of leader election. It also stores the high-water mark of the log. Each
// renewal of the Lease also writes the mark, so this needs no further request. raiseWatermark
// writes the mark between renewals.
type lease struct {
	client coordination.LeaseInterface
	// holder identifies this process in the Lease. previousHolders identify processes that have ended.
	holder, logID, installation string
	previousHolders             []string
	// head returns the highest sequence that the log has acknowledged to this process.
	head   func() uint64
	tenure *tenure
	// health checks the log; nil means healthy.
	health func(ctx context.Context) error

	mu   sync.Mutex
	last *coordinationv1.Lease // as last read or written
	// lost is true if the last read found another holder. Leader election does not know that yet.
	lost bool
	// trusted is true after this process has set the high-water mark, so that it may raise it.
	trusted bool
	// reconciled is the time at which an operator last reconciled this log, or "".
	reconciled string
	// unreachableSince is when the log became unreachable, and zero while it is reachable. yielded is
	// true if this process releases the Lease because another process can reach the log.
	unreachableSince time.Time
	yielded          bool
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
	case slices.Contains(l.previousHolders, record.HolderIdentity):
		record.HolderIdentity = ""
	case !l.isHolder() && record.HolderIdentity != "" && by[trust.OfferedAnnotation] == record.HolderIdentity && by[trust.HolderLogAnnotation] == l.logID:
		l.requestLease(ctx)
	}
	raw, err := json.Marshal(record)
	return record, raw, err
}

// requestLease requests the Lease if its holder cannot reach the log and this process can. If the
// request fails, the next read of the Lease retries it.
func (l *lease) requestLease(ctx context.Context) {
	if l.last.Annotations[trust.RequestedAnnotation] == *l.last.Spec.HolderIdentity || l.checkHealth(ctx) != nil {
		return
	}
	asking := l.last.DeepCopy()
	asking.Annotations[trust.RequestedAnnotation] = *asking.Spec.HolderIdentity
	if written, err := l.client.Update(ctx, asking, metav1.UpdateOptions{}); err == nil {
		l.last = written
	}
}

// yield releases the Lease if another process has requested it and the log is still unreachable.
// This process then stops acting and no longer renews the Lease, so that leader election ends the
// process.
func (l *lease) yield() {
	if l.isUnreachable() && l.last.Annotations[trust.RequestedAnnotation] == l.holder {
		l.yielded = true
		l.tenure.beginRenewal()(0)
	}
}

func (l *lease) checkHealth(ctx context.Context) error {
	if l.health == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	return l.health(ctx)
}

// monitorHealth makes the holder offer the Lease when the log has been unreachable for offerAfter.
// Without that, all processes that can reach the log would wait for this one.
func (l *lease) monitorHealth(ctx context.Context, logger *slog.Logger) error {
	said := false
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		err := l.checkHealth(ctx)
		if ctx.Err() != nil {
			return
		}
		away := l.recordReachability(errors.Is(err, eventlog.ErrUnavailable))
		if away && !said {
			logger.Warn("the event log cannot be reached: a process that can reach it may take the Lease", "error", err)
		}
		said = away
	}, storeCheckInterval)
	return nil
}

// recordReachability records whether the log is unreachable now (away), and reports whether it has
// been unreachable for offerAfter.
func (l *lease) recordReachability(away bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !away {
		l.unreachableSince = time.Time{}
	} else if l.unreachableSince.IsZero() {
		l.unreachableSince = time.Now()
	}
	return l.isUnreachable()
}

func (l *lease) isUnreachable() bool {
	return !l.unreachableSince.IsZero() && time.Since(l.unreachableSince) >= offerAfter
}

func (l *lease) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	found, err := l.client.Get(ctx, trust.LeaseName, metav1.GetOptions{})
	if err == nil {
		l.last = found
		if l.lost = !l.isHolder(); !l.lost {
			l.yield()
		}
	}
	// If a user has deleted or edited the Lease, another process can acquire it before it expires.
	if err == nil && !l.isHolder() || apierrors.IsNotFound(err) {
		l.tenure.beginRenewal()(0)
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
	if l.yielded {
		return errYielded
	}
	l.annotate(made)
	written := l.tenure.beginRenewal()
	made, err := l.client.Create(ctx, made, metav1.CreateOptions{})
	if err == nil {
		l.last = made
		written(l.leaseDuration(made.Spec))
	}
	return err
}

// Update implements resourcelock.Interface. It never overwrites the Lease of another process.
// Leader election could do that when it releases the Lease after a failed renewal, or renews the
// Lease without reading it. A release stops this process from acting even if the release fails.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case record.HolderIdentity != l.holder:
		l.tenure.beginRenewal()(0)
		if !l.isHolder() {
			return fmt.Errorf("releasing Lease %s/%s: another process holds it", trust.LeaseNamespace, trust.LeaseName)
		}
	case l.lost:
		return fmt.Errorf("renewing Lease %s/%s: another process holds it", trust.LeaseNamespace, trust.LeaseName)
	case l.yielded:
		return errYielded
	}
	return l.update(ctx, resourcelock.LeaderElectionRecordToLeaseSpec(&record))
}

// isHolder reports whether this process was the holder when the Lease was last read or written.
func (l *lease) isHolder() bool {
	return l.last != nil && l.last.Spec.HolderIdentity != nil && *l.last.Spec.HolderIdentity == l.holder
}

// update writes the Lease. It fails if another client has written the Lease since it was last read.
func (l *lease) update(ctx context.Context, spec coordinationv1.LeaseSpec) error {
	if l.last == nil {
		return errors.New("the Lease was not read yet")
	}
	next := l.last.DeepCopy()
	next.Spec = spec
	l.annotate(next)
	written := l.tenure.beginRenewal()
	next, err := l.client.Update(ctx, next, metav1.UpdateOptions{})
	if err == nil {
		l.last = next
		written(l.leaseDuration(next.Spec))
	}
	return err
}

// leaseDuration returns how long this process holds a Lease that it has just written. It returns 0
// if this process is not the holder.
func (l *lease) leaseDuration(spec coordinationv1.LeaseSpec) time.Duration {
	if spec.LeaseDurationSeconds == nil || spec.HolderIdentity == nil || *spec.HolderIdentity != l.holder || l.yielded {
		return 0
	}
	return time.Duration(*spec.LeaseDurationSeconds) * time.Second
}

// annotate sets the annotations that the holder writes. If the log is trusted, they include the
// high-water mark.
func (l *lease) annotate(o *coordinationv1.Lease) {
	if o.Annotations == nil {
		o.Annotations = make(map[string]string)
	}
	o.Annotations[trust.InstallationAnnotation], o.Annotations[trust.HolderLogAnnotation] = l.installation, l.logID
	delete(o.Annotations, trust.OfferedAnnotation)
	delete(o.Annotations, trust.RequestedAnnotation)
	if l.isUnreachable() {
		o.Annotations[trust.OfferedAnnotation] = l.holder
	}
	if !l.trusted {
		return
	}
	l.annotateReconciled(o)
	mark := trust.Watermark{LogID: l.logID, Sequence: l.head()}
	if old := trust.WatermarkOf(o.Annotations); old.LogID == mark.LogID && old.Sequence > mark.Sequence {
		return
	}
	trust.SetWatermark(o.Annotations, mark)
}

func (l *lease) annotateReconciled(o *coordinationv1.Lease) {
	if l.reconciled == "" {
		delete(o.Annotations, trust.ReconciledAnnotation)
	} else {
		o.Annotations[trust.ReconciledAnnotation] = l.reconciled
	}
}

// watermark returns the high-water mark in the Lease. reconciled is when an operator reconciled the
// log that set the mark, or "".
func (l *lease) watermark(ctx context.Context) (watermark trust.Watermark, reconciled string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(ctx); err != nil {
		return watermark, "", fmt.Errorf("reading the log's high-water mark from Lease %s/%s: %w", trust.LeaseNamespace, trust.LeaseName, err)
	}
	return trust.WatermarkOf(l.last.Annotations), l.last.Annotations[trust.ReconciledAnnotation], nil
}

// setWatermark sets the high-water mark to head, even if the mark was higher, and allows this
// process to raise it from then on. reconciled is when an operator reconciled the log, or "".
func (l *lease) setWatermark(ctx context.Context, head uint64, reconciled string) error {
	return l.write(ctx, func(o *coordinationv1.Lease) bool {
		trust.SetWatermark(o.Annotations, trust.Watermark{LogID: l.logID, Sequence: head})
		l.trusted, l.reconciled = true, reconciled
		l.annotateReconciled(o)
		return true
	})
}

// raiseWatermark ensures that the high-water mark is at least seq. It writes the current head of
// the log, which may be higher: a process that starts appends many claims at once, and renewals
// must not wait for one write per claim.
func (l *lease) raiseWatermark(ctx context.Context, seq uint64) error {
	return l.write(ctx, func(o *coordinationv1.Lease) bool {
		old := trust.WatermarkOf(o.Annotations)
		if !l.trusted || old.LogID == l.logID && old.Sequence >= seq {
			return false
		}
		trust.SetWatermark(o.Annotations, trust.Watermark{LogID: l.logID, Sequence: max(seq, l.head())})
		return true
	})
}

// write changes the Lease while this process holds it, and retries after conflicts.
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
	if !l.isHolder() {
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

// checkOther returns an error if an installation with another log is the leader on this management
// cluster.
func (l *lease) checkOther(now time.Time) error {
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
		return nil // the Lease of the other installation has expired
	}
	return fmt.Errorf("another installation of scute acts on this management cluster: namespace %s, event log %s; this installation (namespace %s, event log %s) does nothing: uninstall one of the two",
		by[trust.InstallationAnnotation], by[trust.HolderLogAnnotation], l.installation, l.logID)
}

// RecordEvent implements resourcelock.Interface.
func (l *lease) RecordEvent(string) {}

// Identity implements resourcelock.Interface.
func (l *lease) Identity() string { return l.holder }

// Describe implements resourcelock.Interface.
func (l *lease) Describe() string { return trust.LeaseNamespace + "/" + trust.LeaseName }
