package transfer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/archive"
	"scute.dev/pause"
	"scute.dev/pause/hold"
	"scute.dev/view"
)

// Restore creates the objects of an archive in a management cluster, paused. Once all of them match
// the archive, it restores the pause states that the archive records. It finds the progress of an
// earlier process in the annotations of the copies and in a record in the cluster.
type Restore struct {
	Target  *kube.Cluster
	Archive *archive.Archive
	// Source is the cluster that was backed up; nil if it is unavailable.
	Source *kube.Cluster
	// SourceGone means that the user asserts that no other management cluster runs the clusters.
	SourceGone bool
	// CarryStatus lists the kinds (Kind.group) whose status is written too.
	CarryStatus []string
	// AcceptLoss lists the kinds (Kind.group) of hosted control planes that may be created empty.
	AcceptLoss []string
	// AckTimeout limits the wait until the target's controllers have acknowledged that every copy
	// is paused.
	AckTimeout time.Duration
	// Progress is called with each step. It may be nil.
	Progress func(Step)

	t      Transfer
	state  mover.State
	record record
}

// Step contains the progress of a restore: in Phase, Done of Total objects are finished.
type Step struct {
	Phase       RestorePhase
	Done, Total int
}

// RestorePhase is a phase of a restore.
type RestorePhase string

const (
	restoreChecking       RestorePhase = "Checking"
	restoreCreating       RestorePhase = "Creating"
	restoreAcknowledging  RestorePhase = "Acknowledging"
	restoreVerifying      RestorePhase = "Verifying"
	restoreResuming       RestorePhase = "Resuming"
	restoreAwaitingResume RestorePhase = "AwaitingResume"
	restoreDone           RestorePhase = "Done"
)

// Prepare runs all checks of a restore and changes nothing. It returns the warnings, or a
// RefusedError if there are errors.
func (r *Restore) Prepare(ctx context.Context) ([]mover.Finding, error) {
	index := r.Archive.Index
	mark := hold.RestoreHolder(index.ID)
	r.t = Transfer{
		ID: mark.ID, log: mark.LogID, command: true, archive: r.Archive, sourceTypes: make(map[string]kube.Type, len(index.Kinds)),
		Dial: func(context.Context, mover.Spec) (*kube.Cluster, error) { return r.Target, nil },
	}
	for _, t := range index.Kinds {
		r.t.sourceTypes[t.GroupKind()] = t
	}
	r.state = mover.State{
		Spec:    mover.Spec{Namespace: index.Namespace, Clusters: index.Clusters, All: index.All, CarryStatus: r.CarryStatus, AcceptLoss: r.AcceptLoss},
		MarkLog: r.t.log, Posted: true,
	}
	r.state.Acks = make(map[object.Ref]pause.Signal)
	p := &scope{Transfer: &r.t, spec: r.state.Spec}
	for _, e := range index.Objects {
		r.state.Plan = append(r.state.Plan, e.Item)
		if e.KeepReason == "" && pause.IsRoot(e.Ref) {
			r.state.Roots = append(r.state.Roots, pause.Root{Ref: e.Ref, UID: e.UID, Found: e.FoundPaused})
		}
		if e.ReportsPause && e.KeepReason == "" {
			r.state.Acks[e.Ref] = pause.ByCondition
		}
		p.members.Objects = append(p.members.Objects, memberOf(e.Item))
	}
	r.report(restoreChecking, 0)
	var f findings
	if err := r.t.connect(ctx, r.state.Spec, "", true); err != nil {
		return nil, err
	}
	var err error
	if r.record, err = readRecord(ctx, r.Target, index); err != nil {
		return nil, err
	}
	if err := r.checkSource(ctx, &f); err != nil {
		return nil, err
	}
	if err := r.record.checkPermitted(ctx, &f); err != nil {
		return nil, err
	}
	switch r.record.phase {
	case restoreDone:
		if err := r.checkDone(ctx, &f); err != nil {
			return nil, err
		}
	case restoreResuming: // the objects were verified; some may be resumed
	default:
		there, err := r.checkExisting(ctx, &f)
		if err != nil {
			return nil, err
		}
		if there {
			return nil, refusedError(f)
		}
		r.checkOtherNamespaces(&f)
		for _, h := range index.Hosted {
			addLoss(&f, r.state.Spec, h.Ref, h.Reason+": its data is not in the backup, and the target would create "+replacement(h.Ref),
				"create a backup without it; or, if it may be empty, accept the loss with --accept-loss "+h.Ref.GroupKind())
		}
		unusable, err := p.reach(ctx)
		if err != nil {
			return nil, err
		}
		found, err := p.run(ctx, 0, unusable)
		if f = append(f, found...); err != nil {
			return nil, err
		}
	}
	if err := refusedError(f); err != nil {
		return nil, err
	}
	return sortFindings(f), nil
}

// checkOtherNamespaces adds warnings about objects outside of the Clusters' namespace. They are
// created with the permissions of the user who restores, although the author of the backup may have
// no permissions in these namespaces.
func (r *Restore) checkOtherNamespaces(f *findings) {
	elsewhere := make(map[string][]string)
	for _, item := range r.state.Plan {
		if namespace := item.Ref.Namespace; namespace != "" && namespace != r.Archive.Index.Namespace {
			elsewhere[namespace] = append(elsewhere[namespace], item.Ref.Short())
		}
	}
	for namespace, objects := range elsewhere {
		f.AddWarning("target: namespace "+namespace, "the backup has objects of this namespace too: "+view.First(objects),
			"a ClusterClass with its templates, and credentials of a provider, are expected there; ask the author of the backup about other objects")
	}
}

// checkExisting returns an error for each Cluster that exists on the target with the UID of the
// backup: the target is then the cluster that was backed up. One error for each Cluster is clearer
// than one for each object.
func (r *Restore) checkExisting(ctx context.Context, f *findings) (has bool, err error) {
	clusters := slices.DeleteFunc(slices.Clone(r.state.Plan), func(item mover.Item) bool { return !pause.IsCluster(item.Ref) })
	there, err := r.t.listPresent(ctx, r.Target, clusters)
	if err != nil {
		return false, err
	}
	for _, item := range clusters {
		if found := there[item.Ref]; found != nil && found.GetUID() == item.UID {
			has = true
			f.AddError("target: "+item.Ref.String(), "the target is the management cluster that was backed up, and it still has this Cluster",
				"name another management cluster with --kubeconfig or --context; or back up and restore only the Clusters that no longer exist")
		}
	}
	return has, nil
}

// checkDone adds findings about a restore that has ended, perhaps long ago: a warning that nothing
// more is created, and an error for each Cluster that no longer exists. Such a Cluster may have
// been deleted with its machines, so it must not be created again.
func (r *Restore) checkDone(ctx context.Context, f *findings) error {
	f.AddWarning("target", "this backup was already restored here, according to "+r.record.String()+": nothing more is created",
		"no action needed if the clusters are as intended")
	there, err := r.t.listPresent(ctx, r.Target, r.state.Plan)
	if err != nil {
		return err
	}
	for _, item := range r.state.Plan {
		if pause.IsCluster(item.Ref) && there[item.Ref] == nil {
			f.AddError("target: "+item.Ref.String(), "it was restored from this backup but no longer exists: it may have been deleted with its machines",
				"find out where it is; if its machines still run and no management cluster manages them, delete "+r.record.String()+" and run the command again")
		}
	}
	return nil
}

func memberOf(item mover.Item) mover.Member {
	return mover.Member{
		Observed: object.Observed{Ref: item.Ref, Version: item.Version, UID: item.UID, ResourceVersion: item.ResourceVersion, PausedByUser: item.PausedByUser},
		Level:    item.Level, MemberOwners: item.Owners, OwningCluster: item.Cluster, KeepReason: item.KeepReason,
	}
}

// Run performs the prepared restore. If it is interrupted, run it again: it continues.
func (r *Restore) Run(ctx context.Context) error {
	if r.record.phase == restoreDone {
		return nil
	}
	if err := r.t.ensureNamespaces(ctx, r.state.Plan); err != nil {
		return err
	}
	if err := r.record.claim(ctx); err != nil {
		return err
	}
	if r.record.phase == restoreCreating {
		if err := r.create(ctx); err != nil {
			return err
		}
		// This is the last check before the restore takes effect: every object is still paused.
		var f findings
		if err := r.checkSource(ctx, &f); err != nil {
			return err
		}
		if err := refusedError(f); err != nil {
			return err
		}
		if err := r.record.enterPhase(ctx, restoreResuming); err != nil {
			return err
		}
	}
	r.report(restoreResuming, 0)
	if err := r.findCopies(ctx); err != nil {
		return err
	}
	if err := r.t.resumeCopies(ctx, &r.state); err != nil {
		return err
	}
	return r.record.enterPhase(ctx, restoreDone)
}

// create creates the missing objects, waits until the target's controllers have acknowledged that
// they are paused, and returns an error if they differ from the archive.
func (r *Restore) create(ctx context.Context) error {
	r.report(restoreCreating, 0)
	_, err := r.t.create(ctx, &r.state, func(o mover.Outcome) error {
		some, ok := o.(mover.Created)
		if !ok {
			return nil
		}
		r.state.Apply(some, time.Time{})
		r.report(restoreCreating, len(r.state.Created))
		_, err := r.record.readOwned(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if err := r.awaitAcks(ctx); err != nil {
		return err
	}
	r.report(restoreVerifying, 0)
	var differences []mover.ObjectReason
	for _, kind := range byKind(r.state.Plan) {
		some, err := r.t.compare(ctx, &r.state, kind)
		if err != nil {
			return err
		}
		differences = append(differences, some...)
	}
	if len(differences) == 0 {
		return nil
	}
	return fmt.Errorf("%d objects on the target differ from the backup; everything stays paused: %s", len(differences), mover.Summary(differences))
}

// awaitAcks waits until the target's controllers have acknowledged the pause of each copy whose
// original had acknowledged one. A controller that resumes while its cache lacks a Machine would
// create a replacement.
func (r *Restore) awaitAcks(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, r.AckTimeout)
	defer cancel()
	pending, err := r.poll(waiting, restoreAcknowledging, func(ctx context.Context) (int, []mover.ObjectReason, error) {
		pending, err := r.t.pollUnacknowledged(ctx, &r.state)
		return len(r.t.acknowledged), pending, err
	})
	if waiting.Err() != nil && ctx.Err() == nil && len(pending) > 0 {
		return fmt.Errorf("the controllers of the target have not acknowledged within %s that every copy is paused; everything stays paused: %s",
			view.Duration(r.AckTimeout), mover.Summary(pending))
	}
	return err
}

// poll calls look until no object is pending. If ctx ends first, it returns the objects that were
// pending last. look returns the number of finished objects and the pending objects.
func (r *Restore) poll(ctx context.Context, phase RestorePhase, look func(context.Context) (int, []mover.ObjectReason, error)) ([]mover.ObjectReason, error) {
	const interval = 500 * time.Millisecond
	var pending []mover.ObjectReason
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		done, now, err := look(ctx)
		if err != nil {
			return false, cmp.Or(ctx.Err(), err)
		}
		pending = now
		r.report(phase, done)
		return len(pending) == 0, nil
	})
	return pending, err
}

func (r *Restore) findCopies(ctx context.Context) error {
	there, err := r.t.listPresent(ctx, r.Target, r.state.Plan)
	if err != nil {
		return err
	}
	r.state.Created = make(map[object.Ref]types.UID, len(there))
	for ref, u := range there {
		r.state.Created[ref] = u.GetUID()
	}
	return nil
}

// AwaitResume waits until every object that was acknowledged at the source has resumed on the
// target. If ctx ends first, it returns the pending objects.
func (r *Restore) AwaitResume(ctx context.Context) ([]mover.ObjectReason, error) {
	return r.poll(ctx, restoreAwaitingResume, func(ctx context.Context) (int, []mover.ObjectReason, error) {
		seen, err := r.t.pollResume(ctx, &r.state)
		r.state.Apply(mover.Resumed{Objects: seen.New}, time.Time{})
		return len(r.state.Resumed), seen.Pending, err
	})
}

func (r *Restore) report(phase RestorePhase, done int) {
	if r.Progress != nil {
		r.Progress(Step{Phase: phase, Done: done, Total: len(r.state.Plan)})
	}
}

// checkSource adds errors unless it is known that no other management cluster works on the same
// machines. If the cluster that was backed up no longer has a Cluster, only the user knows whether
// a third management cluster has it.
func (r *Restore) checkSource(ctx context.Context, f *findings) error {
	const alone = "if no other management cluster runs these clusters, now or later, confirm that with --source-is-gone"
	index := r.Archive.Index
	if r.SourceGone {
		return nil
	}
	if r.Source == nil {
		f.AddError("source", "scute cannot determine whether another management cluster runs these clusters: two management clusters would replace each "+
			"other's machines",
			"set --source-kubeconfig to the kubeconfig of the management cluster that was backed up; or, "+alone)
		return nil
	}
	id, err := r.Source.NamespaceUID(ctx, metav1.NamespaceSystem)
	switch {
	case err != nil:
		return err
	case index.Source.Cluster != "" && id != index.Source.Cluster:
		f.AddError("source", "it is not the management cluster that was backed up: namespace kube-system has UID "+id+", and had "+index.Source.Cluster+
			" in the backup",
			"set --source-kubeconfig to the kubeconfig of the management cluster that was backed up")
		return nil
	case id == r.t.targetID:
		f.AddError("source", "it is the target: scute cannot determine whether another management cluster runs these clusters", alone)
		return nil
	}
	kinds, _, err := movableTypes(ctx, r.Source)
	if err != nil {
		return err
	}
	for _, name := range index.Clusters {
		ref := object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: index.Namespace, Name: name}
		field := "source: " + ref.String()
		var u *unstructured.Unstructured
		if typ, served := kinds[ref.GroupKind()]; served {
			if u, err = r.Source.Find(ctx, typ, ref); err != nil {
				return err
			}
		}
		switch {
		case u == nil && r.record.phase == "":
			f.AddError(field, "it no longer exists there: it may have been moved to another management cluster, or deleted with its machines", alone)
		case u == nil: // paused when the restore began, and deleted since
		case !object.Observe(u).Cluster.Paused:
			f.AddError(field, "it still runs there: two management clusters would replace each other's machines",
				"move it (create a Move there); or pause it there, and never resume it")
		default:
			f.AddWarning(field, "it still exists there, paused", "never resume it there; delete it without its machines")
		}
	}
	return nil
}
