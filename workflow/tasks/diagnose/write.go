package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// bundle is a limited collection of files. It counts the files that exceed the limit.
type bundle struct {
	limit   int
	prefix  string // of the file names
	files   []outputFile
	bytes   int
	omitted int
}

type outputFile struct {
	name string
	data []byte
}

func (b *bundle) put(name string, data []byte) {
	name = b.prefix + name
	if len(b.files) >= diagnoseFiles || b.bytes+len(data)+len(name) > b.limit {
		b.omitted++
		return
	}
	b.files = append(b.files, outputFile{name, data})
	b.bytes += len(data) + len(name)
}

// isFull reports whether the run's directory has evidence of the maximum number of failures.
func isFull(dir string) bool {
	kept, err := os.ReadDir(filepath.Join(dir, "diagnostics"))
	return err == nil && len(kept) >= diagnoseFailures
}

func (e *evidence) writeFolder(c *task.Call, to string) (string, error) {
	folder := to
	if folder == "" {
		name := c.Task
		if c.Failure != nil && c.Failure.Task != "" {
			name = c.Failure.Task
		}
		folder = filepath.Join(c.Dir, "diagnostics", strings.ReplaceAll(cmp.Or(name, "run"), "/", "_"))
	}
	for _, f := range e.files {
		path := filepath.Join(folder, filepath.FromSlash(strings.ReplaceAll(f.name, "..", "_")))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return "", fmt.Errorf("writing diagnostics: %w", err)
		}
		if err := os.WriteFile(path, f.data, 0o600); err != nil {
			return "", fmt.Errorf("writing diagnostics: %w", err)
		}
	}
	return folder, nil
}

// notInKeys matches a character that a key of a ConfigMap cannot contain.
var notInKeys = regexp.MustCompile(`[^-._a-zA-Z0-9]`)

func (d *Kind) writeConfigMap(ctx context.Context, c *task.Call, e *evidence) (string, error) {
	own, err := d.Clusters.Open(ctx, c, access.ClusterRef{})
	if err != nil {
		return "", err
	}
	name := "diagnostics-" + task.Hash(c.Key())[:8]
	if c.Failure != nil {
		failed := *c
		failed.Task = c.Failure.Task + "/" + c.Task
		name = "diagnostics-" + task.Hash(failed.Key())[:8]
	}
	data := make(map[string]any, len(e.files))
	for _, f := range e.files {
		key := notInKeys.ReplaceAllString(f.name, "_")
		data[key[max(0, len(key)-250):]] = strings.ToValidUTF8(string(f.data), "?")
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
	u.SetNamespace(c.Namespace)
	u.SetName(name)
	u.SetAnnotations(map[string]string{access.StepKeyAnnotation: c.Key()})
	owners, err := owner(ctx, own, c)
	if err != nil {
		return "", err
	}
	u.SetOwnerReferences(owners)
	err = own.Kube.Do(ctx, "write ConfigMap "+name, func(ctx context.Context) error {
		return own.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(kube.FieldManager), client.ForceOwnership)
	})
	if err != nil {
		return "", access.FinalIfRefused(err)
	}
	return c.Namespace + "/" + name, nil
}

// owner returns a reference to the WorkflowRun. It returns none if the WorkflowRun does not exist,
// or if the ServiceAccount may not get it.
func owner(ctx context.Context, own *access.Cluster, c *task.Call) ([]metav1.OwnerReference, error) {
	kind := v1alpha1.GroupVersion().WithKind("WorkflowRun")
	run := kube.Type{Group: kind.Group, Kind: kind.Kind, Plural: "workflowruns", Versions: []string{kind.Version}, Namespaced: true}
	u, err := own.Kube.Get(ctx, run, c.Namespace, c.Name)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	// The run's ID ends with the start of the UID. If the run began in another cluster or folder, an
	// annotation contains the ID.
	uid := strings.TrimPrefix(c.Run, c.Namespace+"/"+c.Name+"/")
	if !strings.HasPrefix(string(u.GetUID()), uid) && access.StepKeyOf(u) != c.Run {
		return nil, nil
	}
	return []metav1.OwnerReference{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: u.GetName(), UID: u.GetUID()}}, nil
}
