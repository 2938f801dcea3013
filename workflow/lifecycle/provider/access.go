package provider

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"scute.dev/internal/atomicfile"
	"scute.dev/kube"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// StoreKubeconfig returns how the run reaches the cluster's API server: the provider's reference,
// or a copy of Cluster API's kubeconfig, in a file in folder for a local run, else in a Secret in
// the run's namespace. Cluster API's own Secret cannot be used, because it moves with the cluster.
func (t Target) StoreKubeconfig(from any, folder string) (Access, error) {
	if a, ok := from.(Accessor); ok {
		ref, known, err := a.Access(t.Context, t.Manager, t.Cluster)
		if err != nil {
			return Access{}, fmt.Errorf("getting access to the API server of cluster %s from the provider: %w", t.Name, err)
		}
		if known {
			return Access{Cluster: &ref}, nil
		}
	}
	data, err := t.waitForKubeconfig()
	if err != nil {
		return Access{}, err
	}
	var ref access.ClusterRef
	if t.Local() {
		ref.Kubeconfig = t.kubeconfigPath(folder)
		err = t.writeKubeconfigFile(ref.Kubeconfig, data)
	} else {
		ref.KubeconfigSecretRef = &access.SecretKey{Name: t.secretName()}
		err = t.writeKubeconfigSecret(data)
	}
	return Access{Cluster: &ref}, err
}

// RemoveKubeconfig removes the copy that StoreKubeconfig stored.
func (t Target) RemoveKubeconfig(folder string) error {
	if t.Local() {
		if err := os.Remove(t.kubeconfigPath(folder)); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("removing the kubeconfig of cluster %s: %w", t.Name, err)
		}
		return nil
	}
	return RemoveOwn(t.Context, "Secret", t.secretName(), func(annotations map[string]string) bool {
		return annotations[access.StepKeyAnnotation] != "" && !t.belongsToAnother(annotations)
	})
}

func (t Target) waitForKubeconfig() (data []byte, err error) {
	on, err := t.open()
	if err != nil {
		return nil, err
	}
	key := types.NamespacedName{Namespace: t.Namespace, Name: t.Name + "-kubeconfig"}
	err = t.poll("Secret "+key.String(), func() ([]string, error) {
		secret, err := on.Data(t, "Secret", key)
		if data = secret["value"]; err == nil && len(data) == 0 {
			return []string{`it has no key "value"`}, nil
		}
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	if _, err := kube.ParseKubeconfig(data); err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return data, nil
}

// kubeconfigPath returns a path per run: clusters of different managers may have the same name.
func (t Target) kubeconfigPath(folder string) string {
	run := sha256.Sum256([]byte(t.Call().RunKey()))
	return filepath.Join(folder, fmt.Sprintf("%s-%s-%x.kubeconfig", t.Namespace, t.Name, run[:4]))
}

// writeKubeconfigFile replaces the file, so that an old file's mode does not let others read it.
func (t Target) writeKubeconfigFile(path string, data []byte) error {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = atomicfile.WriteBytes(path, data)
	}
	if err != nil {
		return fmt.Errorf("storing the kubeconfig of cluster %s: %w", t.Name, err)
	}
	return nil
}

func (t Target) secretName() string { return t.Name + "-access" }

// clusterAnnotation identifies the cluster whose kubeconfig a Secret contains, because several
// clusters may have the same name.
const clusterAnnotation = "scute.dev/cluster"

func (t Target) clusterAnnotationValue() string {
	if data, err := json.Marshal(t.Manager); err == nil && t.Manager != (access.ClusterRef{}) {
		return t.fullName() + " of " + string(data)
	}
	return t.fullName()
}

func (t Target) belongsToAnother(annotations map[string]string) bool {
	mark := annotations[clusterAnnotation]
	return mark != "" && mark != t.clusterAnnotationValue()
}

func (t Target) writeKubeconfigSecret(data []byte) error {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: t.secretName()}}
	return WriteOwn(t.Context, "Secret", s, func() error {
		if t.belongsToAnother(s.Annotations) {
			return task.Final(fmt.Errorf("it contains the kubeconfig of cluster %s: run the workflow in another namespace, or delete the Secret if it is "+
				"no longer used", s.Annotations[clusterAnnotation]))
		}
		s.Annotations[clusterAnnotation] = t.clusterAnnotationValue()
		s.Data = map[string][]byte{"value": data}
		return nil
	})
}

// WriteOwn creates an object in the run's namespace, or updates an object that some run created. It
// sets StepKeyAnnotation to the key of this run. fill sets the content.
func WriteOwn(c *Context, kind string, o client.Object, fill func() error) error {
	on, err := c.Open(access.ClusterRef{})
	if err != nil {
		return err
	}
	o.SetNamespace(c.Call().Namespace)
	return on.Kube.Do(c, "write "+kind+" "+client.ObjectKeyFromObject(o).String(), func(ctx context.Context) error {
		_, err := controllerutil.CreateOrUpdate(ctx, on.Client, o, func() error {
			if o.GetUID() != "" && o.GetAnnotations()[access.StepKeyAnnotation] == "" {
				return task.Final(errors.New("it exists, but no run created it: delete or rename it"))
			}
			annotations.AddAnnotations(o, map[string]string{access.StepKeyAnnotation: c.Call().RunKey()})
			return fill()
		})
		return err
	})
}

// RemoveOwn deletes an object of the core API group in the run's namespace if own returns true for
// the object's annotations. An object that does not exist counts as deleted.
func RemoveOwn(c *Context, kind, name string, own func(annotations map[string]string) bool) error {
	on, err := c.Open(access.ClusterRef{})
	if err != nil {
		return err
	}
	ref := access.ObjectRef{APIVersion: "v1", Kind: kind, Namespace: c.Call().Namespace, Name: name}
	o, err := on.Find(c, ref)
	if err != nil || o == nil || !own(o.GetAnnotations()) {
		return err
	}
	return on.Delete(c, ref, o.GetUID(), metav1.DeletePropagationBackground)
}
