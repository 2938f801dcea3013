package diagnose

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Kind collects evidence of a failure: objects, their conditions, events, and the logs of pods that
// are not ready or have restarted. It is meant for hooks.onFailure, and can also be a task.
//
// In a local run it writes files, in the daemon one ConfigMap beside the WorkflowRun, both of
// limited size. It collects only the keys of Secrets, and redacts values that look like a key, a
// token or a password.
//
// It is best effort: errors.txt lists what could not be collected.
type Kind struct {
	Clusters *access.Clusters
}

// With are the inputs of Diagnose.
type With struct {
	// Namespace of the Cluster API objects, events and pods; the run's by default, unless only Objects are named.
	Namespace string `json:"namespace,omitempty"`
	// Clusters restricts the collection to the objects of these Cluster API Clusters. Default: all
	// objects of the namespace.
	Clusters []string `json:"clusters,omitempty"`
	// Objects are collected in addition to the objects of a namespace, or instead of them.
	Objects []access.ObjectRef `json:"objects,omitempty"`
	// Cluster is the API server to read from; the run's by default.
	Cluster access.ClusterRef `json:"cluster,omitzero"`
	// Others are further API servers, whose objects of the same namespace are collected into the
	// folders cluster-2 and so on. Empty references are ignored.
	Others []access.ClusterRef `json:"others,omitempty"`
	// To is the folder to write to; only a local run may set it. Default: that of the run.
	To string `json:"to,omitempty"`
}

type output struct {
	Folder    string `json:"folder,omitempty"`
	ConfigMap string `json:"configMap,omitempty"`
	Files     int    `json:"files"`
	Bytes     int    `json:"bytes"`
	// Omitted counts files that exceeded the limits, and Errors failed reads.
	Omitted int `json:"omitted,omitempty"`
	Errors  int `json:"errors,omitempty"`
	// Skipped is why nothing was collected.
	Skipped string `json:"skipped,omitempty"`
}

// Validate checks the objects and the folder.
func (d *Kind) Validate(with json.RawMessage) []workflow.Problem {
	w, problems := task.Decode[With](with)
	if len(problems) > 0 {
		return problems
	}
	for i, ref := range w.Objects {
		problems = append(problems, ref.Check(fmt.Sprintf("objects[%d]", i))...)
	}
	if w.To != "" && !d.Clusters.IsLocal() {
		problems.Add("to", "a folder can only be used in a local run", "remove it: the daemon writes a ConfigMap in the namespace of the WorkflowRun")
	}
	return problems
}

// Run collects the evidence and writes it.
func (d *Kind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	w, err := task.ReadInputs[With](c, d.Validate)
	if err != nil {
		return nil, err
	}
	// The daemon writes no folder: its users could not read it, and it shares the event log's volume.
	folder := d.Clusters.Local && (c.Dir != "" || w.To != "")
	limit := diagnoseFolderBytes
	if !folder {
		limit = diagnoseConfigMapBytes
	}
	if folder && c.Failure != nil && w.To == "" && isFull(c.Dir) {
		return json.Marshal(output{Skipped: fmt.Sprintf("the folder of the run already has the evidence of %d failures", diagnoseFailures)})
	}
	e, observed, failed := &evidence{bundle: bundle{limit: limit}}, 0, []error(nil)
	if c.Failure != nil {
		data, _ := json.MarshalIndent(c.Failure, "", "  ") // strings and numbers can always be encoded
		e.put("failure.json", data)
	}
	for i, ref := range append([]access.ClusterRef{w.Cluster}, w.Others...) {
		if i > 0 && ref == (access.ClusterRef{}) {
			continue
		}
		if i > 0 {
			e = &evidence{bundle: e.bundle}
			e.prefix = fmt.Sprintf("cluster-%d/", i+1)
		}
		if e.cluster, err = d.Clusters.Open(ctx, c, ref); err != nil {
			e.addError("the cluster", err)
		} else {
			e.collect(ctx, c, &w)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		observed, failed = observed+len(e.observed), append(failed, e.errors...)
		e.writeSummary()
	}
	if observed == 0 && len(failed) > 0 {
		return nil, fmt.Errorf("nothing could be collected: %w", errors.Join(failed...))
	}
	out := output{Files: len(e.files), Bytes: e.bytes, Omitted: e.omitted, Errors: len(failed)}
	if folder {
		out.Folder, err = e.writeFolder(c, w.To)
	} else {
		out.ConfigMap, err = d.writeConfigMap(ctx, c, e)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// Undo does nothing, so the evidence is kept.
func (*Kind) Undo(context.Context, *task.Call) error { return nil }

func (e *evidence) collect(ctx context.Context, c *task.Call, w *With) {
	for _, o := range w.Objects {
		o.Namespace = cmp.Or(o.Namespace, c.Namespace)
		if u, err := e.cluster.Get(ctx, o.Ref()); err != nil {
			e.addError(o.Kind+" "+o.Name, err)
		} else {
			e.addObject(u)
		}
	}
	if w.Namespace != "" || len(w.Objects) == 0 {
		c.Progress("collecting evidence in namespace " + cmp.Or(w.Namespace, c.Namespace))
		e.collectNamespace(ctx, cmp.Or(w.Namespace, c.Namespace), w.Clusters)
	}
}

// collectNamespace collects a namespace's Cluster API objects, events and unhealthy pods.
func (e *evidence) collectNamespace(ctx context.Context, namespace string, clusters []string) {
	types, err := e.types(ctx)
	if err != nil {
		e.addError("the kinds of Cluster API", err)
		if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && len(types) == 0 {
			return // the API server does not respond, and each of the calls below would be retried, too
		}
	}
	for _, typ := range types {
		if !typ.Namespaced {
			continue
		}
		list := e.cluster.Kube.List
		if typ.IsCore() {
			list = e.cluster.Kube.ListMetadata // without the content
		}
		err := list(ctx, typ, namespace, func(u *unstructured.Unstructured) error {
			if belongsToClusters(u, clusters) {
				e.addObject(u.DeepCopy())
			}
			return nil
		})
		if err != nil {
			e.addError(typ.GroupKind(), err)
		}
	}
	events := kube.Type{Kind: "Event", Plural: "events", Versions: []string{"v1"}, Namespaced: true}
	err = e.cluster.Kube.List(ctx, events, namespace, func(u *unstructured.Unstructured) error {
		e.addEvent(u)
		return nil
	})
	if err != nil {
		e.addError("events", err)
	}
	e.collectPods(ctx, namespace)
}

// types returns the kinds whose objects belong to clusters. If listing CustomResourceDefinitions is
// forbidden, it returns the served kinds of Cluster API's groups.
func (e *evidence) types(ctx context.Context) ([]kube.Type, error) {
	types, _, err := e.cluster.Kube.MovableTypes(ctx)
	if !apierrors.IsForbidden(err) {
		return types, err
	}
	types, err = e.cluster.Kube.NamespacedTypes(ctx)
	return slices.DeleteFunc(types, func(t kube.Type) bool {
		plain := t.Group == "" && (t.Kind == "Secret" || t.Kind == "ConfigMap")
		return !plain && !strings.HasSuffix(t.Group, object.CoreGroup)
	}), err
}
