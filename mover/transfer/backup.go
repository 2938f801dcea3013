package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/archive"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

// Backup writes all objects that belong to Clusters of one namespace into an archive. It changes
// nothing in the cluster.
type Backup struct {
	Source    *kube.Cluster
	Selection mover.Selection
	Writer    *archive.Writer
	// Shares is like Transfer.Shares.
	Shares func(namespace string) bool
	// Progress is called with the number of objects read so far and the total number. It may be
	// nil.
	Progress func(done, total int)

	t      Transfer
	stored map[object.Ref]storedObject
}

type storedObject struct {
	uid, version string
	content      string
	foundPaused  bool
}

// RefusedError contains the findings that prevent a backup or a restore. Nothing was changed.
type RefusedError struct{ Findings []mover.Finding }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused, with %d findings", len(e.Findings))
}

const maxRounds = 5

// Run reads all objects and returns the index of the archive and warnings. It reads changed objects
// again until no object was added or deleted since the last round, and none changed in a way that
// matters to a restore. The index lists the objects that still changed in the last round.
func (b *Backup) Run(ctx context.Context) (*archive.Index, []mover.Finding, error) {
	b.t, b.stored = Transfer{Source: b.Source, Shares: b.Shares, command: true}, make(map[object.Ref]storedObject)
	index := &archive.Index{Version: archive.Version, Namespace: b.Selection.Namespace, All: b.Selection.All, Source: archive.Source{Server: b.Source.Host}}
	if err := b.t.connect(ctx, b.spec(), "", false); err != nil {
		return nil, nil, err
	}
	var err error
	if index.Source.Cluster, err = b.Source.NamespaceUID(ctx, metav1.NamespaceSystem); err != nil {
		return nil, nil, err
	}
	var f findings
	switch index.Providers, err = inventory(ctx, b.Source); {
	case apierrors.IsForbidden(err):
		f.AddWarning("providers", "their versions are not in the backup: "+err.Error(), grantAdvice())
	case err != nil:
		return nil, nil, err
	}
	members, changed, err := b.read(ctx, index, &f)
	if err != nil {
		return nil, nil, err
	}
	b.completeIndex(index, members, changed)
	return index, sortFindings(f), nil
}

func (b *Backup) spec() mover.Spec {
	return mover.Spec{Namespace: b.Selection.Namespace, Clusters: b.Selection.Clusters, All: b.Selection.All}
}

func (b *Backup) read(ctx context.Context, index *archive.Index, f *findings) (mover.Members, []object.Ref, error) {
	var changed []object.Ref
	for round := range maxRounds {
		members, err := b.listMembers(ctx, index, f, round == 0)
		if err != nil {
			return members, nil, err
		}
		gone, todo, err := b.compareStored(members)
		if err != nil {
			return members, nil, err
		}
		if changed, err = b.fetch(ctx, todo); err != nil {
			return members, nil, err
		}
		last := round == maxRounds-1
		if (last || round > 0 && !gone && len(changed) == 0) && b.isComplete(members) {
			return members, changed, nil
		}
	}
	return mover.Members{}, nil, errors.New("objects were created and deleted during every read: retry when the clusters are less busy")
}

// isComplete reports whether every member of the last listing is stored. It compares only UIDs,
// because a member may change, or be deleted, right after the listing.
func (b *Backup) isComplete(members mover.Members) bool {
	return len(b.stored) == len(members.Objects) &&
		!slices.ContainsFunc(members.Objects, func(m mover.Member) bool { return b.stored[m.Ref].uid != string(m.UID) })
}

// listMembers lists the members. It returns an error if one of them prevents a backup. If first is
// true, it adds the warnings to f.
func (b *Backup) listMembers(ctx context.Context, index *archive.Index, f *findings, first bool) (mover.Members, error) {
	members, w, err := b.t.members(ctx, b.spec(), everyKind)
	if err != nil {
		return members, err
	}
	p := &scope{Transfer: &b.t, spec: b.spec(), members: members, snapshot: w}
	_, index.Clusters = clustersOf(w, p.spec)
	found, err := p.checkSelection(ctx)
	found = append(found, b.check(members)...)
	if err := cmp.Or(err, refusedError(found)); err != nil {
		return members, err
	}
	if first {
		*f = append(*f, found...)
	}
	return members, nil
}

// check returns findings about objects that a restore could not recreate safely: objects that are
// being created or deleted, or are missing from the backup.
func (b *Backup) check(members mover.Members) (f findings) {
	const half = "wait until that has ended, or back up other Clusters by name"
	for _, m := range members.Objects {
		f = append(f, unfitFindings(m)...)
		if m.KeepReason != "" {
			continue
		}
		if why := remediationText(m); why != "" {
			f.AddError(m.Ref.String(), why, b.t.remediationAdvice())
		}
		if pause.IsRoot(m.Ref) && m.MoveID != "" {
			f.AddError(m.Ref.String(), "it is held by "+holderOf(m).Describe(), half)
		}
	}
	f = append(f, members.Findings...)
	for _, a := range members.AddressFindings {
		f.AddWarning(a.Field, "its pool is not in the backup: after a restore, the pool may assign the address again",
			"exclude the address from the pool on the target")
	}
	f = append(f, b.t.unservedFindings("")...)
	for _, h := range members.Hosted {
		f.AddWarning(h.Ref.String(), h.Reason+": its data is not in the backup, and a restore would create "+replacement(h.Ref),
			"back up its data by other means")
	}
	for _, d := range members.DroppedOwners {
		f.AddWarning(d.Ref.String(), d.Reason, "no action needed, unless that owner is required after a restore")
	}
	for _, l := range members.Missing {
		f.AddWarning(l.Ref.String(), "it is not in the backup: "+l.Reason, "create it on the target before a restore")
	}
	for _, l := range members.Excluded {
		if isElsewhere(l.Ref, b.Selection.Namespace) {
			f.AddWarning(l.Ref.String(), "it is not in the backup: "+l.Reason, shareAdvice)
		}
	}
	return f
}

// compareStored removes deleted objects from the archive, and returns the members whose current
// state is not stored. gone reports whether objects were deleted.
func (b *Backup) compareStored(members mover.Members) (gone bool, todo []mover.Item, err error) {
	there := make(map[object.Ref]bool, len(members.Objects))
	for _, m := range members.Objects {
		there[m.Ref] = true
		if s, ok := b.stored[m.Ref]; !ok || s.uid != string(m.UID) || s.version != m.ResourceVersion {
			todo = append(todo, mover.ItemOf(m, ""))
		}
	}
	for ref := range b.stored {
		if !there[ref] {
			gone = true
			delete(b.stored, ref)
			err = errors.Join(err, b.Writer.Drop(ref))
		}
	}
	return gone, todo, err
}

// fetch reads the objects in todo and stores them. It returns those that were deleted or whose
// content has changed.
func (b *Backup) fetch(ctx context.Context, todo []mover.Item) (changed []object.Ref, err error) {
	var mu sync.Mutex
	done := 0
	err = eachOriginal(ctx, &b.t, todo, func(_ context.Context, i int, u *unstructured.Unstructured) (none struct{}, err error) {
		if u == nil { // deleted, as the next listing will show
			mu.Lock()
			defer mu.Unlock()
			changed = append(changed, todo[i].Ref)
			return none, nil
		}
		now, err := storedObjectOf(u)
		if err == nil {
			err = b.Writer.Put(u)
		}
		if err != nil {
			return none, err
		}
		mu.Lock()
		defer mu.Unlock()
		if was := b.stored[todo[i].Ref]; was.uid != now.uid || was.content != now.content || was.foundPaused != now.foundPaused {
			changed = append(changed, todo[i].Ref)
		}
		b.stored[todo[i].Ref] = now
		return none, nil
	}, func(batch []struct{}) error {
		if done += len(batch); b.Progress != nil {
			b.Progress(done, len(todo))
		}
		return nil
	})
	slices.SortFunc(changed, object.Compare)
	return changed, err
}

// storedObjectOf returns the identity and the hash of an object. The hash excludes the status,
// which may change all the time.
func storedObjectOf(u *unstructured.Unstructured) (storedObject, error) {
	s := storedObject{uid: string(u.GetUID()), version: u.GetResourceVersion(), foundPaused: hold.RootOf(u).Found}
	sum, err := mover.ContentHash(u)
	if err != nil {
		return s, err
	}
	s.content = fmt.Sprint(sum, u.GetOwnerReferences())
	if sum == "" { // a Secret, which has no status
		s.content = s.version
	}
	return s, nil
}

func (b *Backup) completeIndex(index *archive.Index, members mover.Members, changed []object.Ref) {
	kinds := make(map[string]kube.Type)
	for _, m := range members.Objects {
		now := b.stored[m.Ref]
		item := mover.ItemOf(m, "")
		item.ResourceVersion = now.version
		entry := archive.Entry{Item: item, ReportsPause: m.Paused != object.Absent, File: b.Writer.File(m.Ref)}
		if pause.IsRoot(m.Ref) {
			entry.FoundPaused = now.foundPaused
			entry.PausedByUser = now.foundPaused && !pause.IsCluster(m.Ref)
		}
		index.Objects = append(index.Objects, entry)
		kinds[m.Ref.GroupKind()] = b.t.sourceTypes[m.Ref.GroupKind()]
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		index.Kinds = append(index.Kinds, kinds[kind])
	}
	index.Excluded, index.Hosted, index.Changed = members.Excluded, members.Hosted, changed
}
