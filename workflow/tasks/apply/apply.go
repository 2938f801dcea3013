package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Kind applies Kubernetes objects with server-side apply, and waits until they are ready.
//
// It reads and records every object before it writes any. The undo deletes exactly the objects that
// this run created, and restores exactly the fields that this run changed and no other client has
// changed since. An object that already matches its manifest is neither written nor rolled back.
//
// The content of Secrets is never recorded: the undo returns an error for a changed Secret.
type Kind struct {
	Clusters *access.Clusters
}

// With are the inputs of Apply. The objects come from exactly one of manifests, from and files.
type With struct {
	// Manifests are the objects: a list of them, or a string of YAML documents. No Secret with
	// content may be among them: what is in a manifest is kept in the log forever.
	Manifests *Manifests `json:"manifests,omitempty"`
	// From names a ConfigMap or a Secret whose key holds the manifests. It is read when the task runs.
	From *ManifestSource `json:"from,omitempty"`
	// Files with manifests, for local runs. They are read when the task runs.
	Files []string `json:"files,omitempty"`
	// Only applies these objects of the manifests, and ignores all others.
	Only []access.ObjectRef `json:"only,omitempty"`
	// Cluster to apply to; the run's by default.
	Cluster access.ClusterRef `json:"cluster,omitzero"`
	// Namespace of objects without a namespace; the run's by default.
	Namespace string `json:"namespace,omitempty"`
	// Wait until the objects are settled: objects of Cluster API that have machines are rolled out,
	// all others are ready as kstatus defines it. Default: true.
	Wait *bool `json:"wait,omitempty"`
	// Force becomes the owner of fields that another field manager owns. Default: false, a conflict fails the task.
	Force bool `json:"force,omitempty"`
	// Adopt permits changes of objects that exist already. Default: true; with false the task fails if one exists.
	Adopt *bool `json:"adopt,omitempty"`
	// Expand makes a separate task of each object.
	Expand bool `json:"expand,omitempty"`
}

type output struct {
	Objects []outputObject `json:"objects"`
	// More is the number of objects that the list omits.
	More int `json:"more,omitempty"`
}

type outputObject struct {
	access.ObjectRef
	UID types.UID `json:"uid"`
	// Action of the run: created, changed or none.
	Action string `json:"action"`
	// Removed are the fields, at most ten, that an earlier Apply of scute set and this one removed.
	Removed []string `json:"removed,omitempty"`
	// Complete is set for a Job that succeeded. If it is deleted later, it does not run again.
	Complete bool `json:"complete,omitempty"`
	// NotRestorable is the reason why a rollback cannot restore the changed object.
	NotRestorable string `json:"notRestorable,omitempty"`
}

// maxNamedFields limits outputObject.Removed.
const maxNamedFields = 10

const (
	actionCreated = "created"
	actionChanged = "changed"
	actionNone    = "none"
)

// Validate checks the inputs, and the manifests if they are inline.
func (a *Kind) Validate(with json.RawMessage) []workflow.Problem {
	w, problems := task.Decode[With](with)
	if len(problems) > 0 {
		return problems
	}
	if task.CountSet(w.Manifests != nil, w.From != nil, len(w.Files) > 0) != 1 {
		problems.Add("manifests", "there must be exactly one source of objects", "set one of manifests, from and files")
	}
	if w.From != nil {
		problems = append(problems, w.From.check()...)
	}
	if len(w.Files) > 0 && !a.Clusters.IsLocal() {
		problems.Add("files", "files can only be used in a local run", "use manifests, or from with a ConfigMap or Secret")
	}
	for i, ref := range w.Only {
		problems = append(problems, ref.Check(fmt.Sprintf("only[%d]", i))...)
	}
	if w.Manifests != nil {
		problems = append(problems, checkSecrets(w.Manifests)...)
		if !w.Manifests.hasReferences() {
			problems = append(problems, checkInline(w.Manifests)...)
		}
	}
	return problems
}

func checkInline(m *Manifests) (problems task.Problems) {
	objects, err := m.Objects()
	if err != nil {
		problems.Add("manifests", err.Error(), "write a list of objects, or a string of YAML documents")
	} else if len(objects) == 0 {
		problems.Add("manifests", "no objects are listed", "add at least one, or remove the task")
	}
	seen := make(map[access.ObjectRef]bool)
	for _, u := range objects {
		ref := access.RefOf(u)
		if seen[ref] {
			problems.Add("manifests", ref.String()+" is listed twice", "remove one of the two")
		}
		seen[ref] = true
	}
	return problems
}

func checkSecrets(m *Manifests) (problems task.Problems) {
	names, unreadable := m.secrets()
	for _, name := range names {
		problems.Add("manifests", "Secret "+name+" has its content in the manifest, which the log keeps forever",
			"put it in a Secret and use from.secretRef")
	}
	if unreadable {
		problems.Add("manifests", "a document that may be a Secret cannot be parsed before outputs are filled in, and the log keeps it forever",
			"put references in quotes, or use from.secretRef")
	}
	return problems
}

// Objects reads the objects from the source that the inputs name.
func (a *Kind) Objects(ctx context.Context, c *task.Call, with *With) (objects []*unstructured.Unstructured, err error) {
	switch {
	case with.Manifests != nil:
		if objects, err = with.Manifests.Objects(); err != nil {
			err = task.Final(fmt.Errorf("with.manifests: %w", err))
		}
	case with.From != nil:
		var text []byte
		if text, err = with.From.read(ctx, a.Clusters, c); err == nil {
			if objects, err = parseManifests(text); err != nil {
				err = fmt.Errorf("with.from: %w", err)
			}
		}
	default:
		objects, err = readManifestFiles(with.Files)
	}
	if err != nil || len(with.Only) == 0 {
		return objects, err
	}
	return selectOnly(objects, with.Only)
}

func selectOnly(objects []*unstructured.Unstructured, only []access.ObjectRef) (selected []*unstructured.Unstructured, err error) {
	for _, ref := range only {
		i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return access.RefOf(u) == ref })
		if i < 0 {
			return nil, fmt.Errorf("with.only: %s is no longer among the manifests: restore it, or start a new run", ref)
		}
		selected = append(selected, objects[i])
	}
	return selected, nil
}

// Run reads the objects, records their state, applies the objects that differ from it, and waits
// until all objects are ready.
func (a *Kind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	with, err := task.ReadInputs[With](c, a.Validate)
	if err != nil {
		return nil, err
	}
	w, err := a.newApplying(ctx, c, &with)
	if err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		if err := w.observe(ctx); err != nil {
			return nil, err
		}
		if err := c.Prepare(ctx, w.record, w.record.isAdopted()); err != nil {
			return nil, err
		}
		err := w.write(ctx)
		if failed := w.recordWritten(ctx); err == nil {
			err = failed
		}
		if err == nil {
			break
		}
		if n == maxRaces || !errors.Is(err, errCreatedByOther) && !errors.Is(err, errChangedByOther) {
			return nil, err
		}
	}
	if with.Wait == nil || *with.Wait {
		c.YieldSlot()
		if err := w.waitReady(ctx, w.items); err != nil {
			return nil, err
		}
	}
	return json.Marshal(w.output())
}

// recordWritten stores the record with the objects as the API server returned them. The undo needs
// this state.
func (w *applying) recordWritten(ctx context.Context) error {
	if !w.recordChanged {
		return nil
	}
	w.recordChanged = false
	return w.call.Prepare(ctx, w.record, false)
}

type applying struct {
	call          *task.Call
	with          *With
	cluster       *access.Cluster
	items         []*workItem
	record        *record
	recordChanged bool
}

type workItem struct {
	ref  access.ObjectRef
	want *unstructured.Unstructured
	live *unstructured.Unstructured
	uid  types.UID
	// deferred means that needsWrite is decided again after the CustomResourceDefinition of the
	// object's kind was written.
	needsWrite, deferred bool
	removed              []string
	// complete is set for a Job that succeeded.
	complete bool
}

func (a *Kind) newApplying(ctx context.Context, c *task.Call, with *With) (*applying, error) {
	record, err := task.Recorded[record](c)
	if err != nil {
		return nil, err
	}
	cluster, pinned, err := a.Clusters.Pin(ctx, c, with.Cluster, record.Cluster, !record.isAdopted())
	if err != nil {
		return nil, err
	}
	record.Cluster = pinned
	objects, err := a.Objects(ctx, c, with)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 || len(objects) > access.MaxObjects {
		return nil, task.Final(fmt.Errorf("with: there are %d objects, but a task must have 1 to %d: use several tasks", len(objects), access.MaxObjects))
	}
	w := &applying{call: c, with: with, cluster: cluster, record: &record}
	scopes, namespace := scopesOf(objects), cmp.Or(with.Namespace, c.Namespace)
	for _, u := range objects {
		u = u.DeepCopy()
		ref, known, err := cluster.Qualify(ctx, access.RefOf(u), namespace)
		if err != nil {
			return nil, access.FinalIfRefused(err)
		}
		switch {
		case known:
		case scopes[ref.GVK().GroupKind()] == clusterScoped:
			ref.Namespace = ""
		default:
			ref.Namespace = cmp.Or(ref.Namespace, namespace)
		}
		if waits := with.Wait == nil || *with.Wait; waits && len(record.Objects) == 0 && access.IsShortLived(u) {
			return nil, task.Final(fmt.Errorf("%s: spec.ttlSecondsAfterFinished is less than %d: the Job could be deleted before the task reads its "+
				"result: raise it, remove it, or set with.wait: false", ref, access.MinTTL))
		}
		u.SetNamespace(ref.Namespace)
		object.StripServerFields(u)
		w.items = append(w.items, &workItem{ref: ref, want: u})
	}
	slices.SortStableFunc(w.items, func(a, b *workItem) int { return applyOrder(a.ref) - applyOrder(b.ref) })
	return w, nil
}

func (w *applying) output() output {
	var out output
	for _, item := range w.items {
		if len(out.Objects) == access.MaxNamedObjects {
			out.More++
			continue
		}
		o := outputObject{ObjectRef: item.ref, UID: item.uid, Action: actionNone, Complete: item.complete, Removed: item.removed[:min(len(item.removed), maxNamedFields)]}
		if e := w.record.find(item.ref); e != nil {
			o.Action, o.NotRestorable = e.action(), e.Withheld
		}
		out.Objects = append(out.Objects, o)
	}
	return out
}
