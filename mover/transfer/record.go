package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover/archive"
)

// errTakenOver means that another process has taken over the restore from this process.
var errTakenOver = errors.New("another process has taken over this restore and continues it; this process has stopped")

// record represents a ConfigMap on the target that contains the phase of a restore and the process
// that performs it. The annotations of the copies are not sufficient, because they are removed when
// the copies are resumed.
type record struct {
	cluster *kube.Cluster
	index   *archive.Index
	ref     object.Ref
	phase   RestorePhase // empty if there is no record
	holder  string
}

const restoreLabel = "scute.dev/restore"

// UnfinishedRestore is a restore that was started and has not ended.
type UnfinishedRestore struct {
	Backup, Namespace string
	Clusters          []string
}

// UnfinishedRestores returns the unfinished restores to a cluster, according to its records.
func UnfinishedRestores(ctx context.Context, c *kube.Cluster) ([]UnfinishedRestore, error) {
	var found []UnfinishedRestore
	err := c.ListLabelled(ctx, configMaps(), "", restoreLabel, func(u *unstructured.Unstructured) error {
		data, _, _ := unstructured.NestedStringMap(u.Object, "data")
		if data["phase"] != string(restoreDone) {
			found = append(found, UnfinishedRestore{Backup: data["backup"], Namespace: u.GetNamespace(), Clusters: strings.Split(data["clusters"], ",")})
		}
		return nil
	})
	return found, err
}

func configMaps() kube.Type {
	return kube.Type{Kind: "ConfigMap", Plural: "configmaps", Versions: []string{"v1"}, Namespaced: true}
}

func (r *record) String() string { return r.ref.String() }

func readRecord(ctx context.Context, c *kube.Cluster, index *archive.Index) (record, error) {
	r := record{cluster: c, index: index, ref: object.Ref{Kind: "ConfigMap", Namespace: index.Namespace, Name: "scute-restore-" + index.ID}}
	_, err := r.read(ctx)
	return r, err
}

func (r *record) checkPermitted(ctx context.Context, f *findings) error {
	for _, verb := range []string{"create", "patch"} {
		allowed, err := r.cluster.IsAllowed(ctx, verb, configMaps(), "", r.ref.Namespace)
		if err != nil {
			return err
		}
		if !allowed {
			f.AddError("target", fmt.Sprintf("on the target scute may not %s ConfigMaps in namespace %q, but %s records the progress of the restore", verb,
				r.ref.Namespace, r),
				"grant "+verb+" on configmaps to the identity that scute uses there")
		}
	}
	return nil
}

// read reads the record and sets its phase. It returns nil if the record does not exist.
func (r *record) read(ctx context.Context) (*unstructured.Unstructured, error) {
	u, err := r.cluster.Find(ctx, configMaps(), r.ref)
	if err != nil {
		return nil, err
	}
	if u == nil {
		r.phase = ""
		return nil, nil
	}
	phase := object.Text(u, "data", "phase")
	switch r.phase = RestorePhase(phase); r.phase {
	case restoreCreating, restoreResuming, restoreDone:
		return u, nil
	default:
		return nil, fmt.Errorf("%s has phase %q, which this program does not write", r, phase)
	}
}

// claim makes this process the holder of the restore. It creates the record, or takes an existing
// record over from another process.
func (r *record) claim(ctx context.Context) error {
	r.holder = rand.String(10)
	u, err := r.read(ctx)
	switch {
	case err != nil:
		return err
	case u != nil:
		return r.patch(ctx, u, r.phase)
	}
	u = &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{
		"backup": r.index.ID, "takenAt": r.index.TakenAt.UTC().Format(time.RFC3339), "source": r.index.Source.Cluster,
		"clusters": strings.Join(r.index.Clusters, ","), "phase": string(restoreCreating), "holder": r.holder, "at": timestamp(),
	}}}
	u.SetGroupVersionKind(configMaps().GVK())
	u.SetNamespace(r.ref.Namespace)
	u.SetName(r.ref.Name)
	u.SetLabels(map[string]string{restoreLabel: ""})
	if _, err := r.cluster.Create(ctx, configMaps(), u); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return errTakenOver
		}
		return err
	}
	r.phase = restoreCreating
	return nil
}

func (r *record) readOwned(ctx context.Context) (*unstructured.Unstructured, error) {
	u, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	if u == nil {
		return nil, fmt.Errorf("%s was deleted: run the same command again", r)
	}
	if object.Text(u, "data", "holder") != r.holder {
		return nil, errTakenOver
	}
	return u, nil
}

func (r *record) enterPhase(ctx context.Context, phase RestorePhase) error {
	u, err := r.readOwned(ctx)
	if err != nil {
		return err
	}
	return r.patch(ctx, u, phase)
}

func (r *record) patch(ctx context.Context, u *unstructured.Unstructured, phase RestorePhase) error {
	err := r.cluster.Patch(ctx, "record the progress of the restore", configMaps(), r.ref, map[string]any{
		"metadata": map[string]any{"uid": u.GetUID(), "resourceVersion": u.GetResourceVersion()},
		"data":     map[string]any{"phase": string(phase), "holder": r.holder, "at": timestamp()},
	})
	if apierrors.IsConflict(err) {
		return errTakenOver
	}
	if err == nil {
		r.phase = phase
	}
	return err
}

func timestamp() string { return time.Now().UTC().Format(time.RFC3339) }
