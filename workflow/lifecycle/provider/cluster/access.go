package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/internal/atomicfile"
	"scute.dev/kube"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// StoreKubeconfig returns how a run reaches a cluster's API server: by the reference that the provider returns, or by a copy of the
// kubeconfig that Cluster API wrote on the manager. A local run stores the copy in a file in folder, the daemon in a Secret
// of the run's namespace. The Secret that Cluster API wrote cannot be used, because it moves with the cluster.
func StoreKubeconfig(c *sequence.Context, from any, folder string, manager access.ClusterRef, spec provider.Cluster) (provider.Access, error) {
	if a, ok := from.(provider.Accessor); ok {
		ref, known, err := a.Access(c, manager, spec)
		if err != nil {
			return provider.Access{}, fmt.Errorf("getting access to the API server of cluster %s from the provider: %w", spec.Name, err)
		}
		if known {
			return provider.Access{Cluster: &ref}, nil
		}
	}
	on, err := c.Open(manager)
	if err != nil {
		return provider.Access{}, err
	}
	data, err := waitForKubeconfig(c, on, spec)
	if err != nil {
		return provider.Access{}, err
	}
	var ref access.ClusterRef
	if c.Local() {
		ref, err = writeKubeconfigFile(c, folder, spec, data)
	} else {
		ref, err = writeKubeconfigSecret(c, manager, spec, data)
	}
	return provider.Access{Cluster: &ref}, err
}

// RemoveKubeconfig removes the kubeconfig that StoreKubeconfig stored.
func RemoveKubeconfig(c *sequence.Context, folder string, manager access.ClusterRef, spec provider.Cluster) error {
	if c.Local() {
		if err := os.Remove(kubeconfigPath(c, folder, spec)); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("removing the kubeconfig of cluster %s: %w", spec.Name, err)
		}
		return nil
	}
	on, err := c.Open(access.ClusterRef{})
	if err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: c.Call().Namespace, Name: secretName(spec)}
	return on.Kube.Do(c, "delete Secret "+key.String(), func(ctx context.Context) error {
		var secret corev1.Secret
		err := on.Client.Get(ctx, key, &secret)
		if err != nil || secret.Annotations[AccessAnnotation] == "" || belongsToAnother(&secret, manager, spec) { // it does not exist, or is not the run's
			return client.IgnoreNotFound(err)
		}
		return client.IgnoreNotFound(on.Client.Delete(ctx, &secret, client.Preconditions{UID: &secret.UID}))
	})
}

// waitForKubeconfig waits for the Secret that Cluster API writes.
func waitForKubeconfig(c *sequence.Context, on *access.Cluster, spec provider.Cluster) (data []byte, err error) {
	key := types.NamespacedName{Namespace: spec.Namespace, Name: spec.Name + "-kubeconfig"}
	err = poll(c, "Secret "+key.String(), func(ctx context.Context) ([]string, error) {
		var secret corev1.Secret
		err := on.Kube.Do(ctx, "get Secret "+key.String(), func(ctx context.Context) error { return on.Client.Get(ctx, key, &secret) })
		if err != nil {
			return nil, err
		}
		if data = secret.Data["value"]; len(data) == 0 {
			return []string{`it has no key "value"`}, nil
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	if _, err := kube.ParseKubeconfig(data); err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return data, nil
}

// kubeconfigPath returns the path of a cluster's kubeconfig. It is unique for the run, because clusters of different managers may have the same name.
func kubeconfigPath(c *sequence.Context, folder string, spec provider.Cluster) string {
	run := sha256.Sum256([]byte(c.Call().RunKey()))
	return filepath.Join(folder, fmt.Sprintf("%s-%s-%x.kubeconfig", spec.Namespace, spec.Name, run[:4]))
}

// writeKubeconfigFile replaces the file, so that only its owner may read it whatever the mode of the old one was.
func writeKubeconfigFile(c *sequence.Context, folder string, spec provider.Cluster, data []byte) (access.ClusterRef, error) {
	path := kubeconfigPath(c, folder, spec)
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		err = atomicfile.WriteBytes(path, data)
	}
	if err != nil {
		return access.ClusterRef{}, fmt.Errorf("storing the kubeconfig of cluster %s: %w", spec.Name, err)
	}
	return access.ClusterRef{Kubeconfig: path}, nil
}

func secretName(spec provider.Cluster) string { return spec.Name + "-access" }

// AccessAnnotation is the annotation of an object that a run has made. Its value is the idempotency key of the run.
const AccessAnnotation = access.StepKeyAnnotation

// clusterAnnotation is the annotation with the cluster whose kubeconfig is in a Secret. Clusters of other namespaces or managers may have the same name.
const clusterAnnotation = "scute.dev/cluster"

func clusterAnnotationValue(manager access.ClusterRef, spec provider.Cluster) string {
	name := spec.Namespace + "/" + spec.Name
	if data, err := json.Marshal(manager); err == nil && manager != (access.ClusterRef{}) {
		name += " of " + string(data)
	}
	return name
}

// belongsToAnother reports whether a Secret has the kubeconfig of another cluster. It returns false for a Secret of an earlier version of scute, which has
// no annotation.
func belongsToAnother(secret *corev1.Secret, manager access.ClusterRef, spec provider.Cluster) bool {
	mark := secret.Annotations[clusterAnnotation]
	return mark != "" && mark != clusterAnnotationValue(manager, spec)
}

func writeKubeconfigSecret(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster, data []byte) (access.ClusterRef, error) {
	on, err := c.Open(access.ClusterRef{})
	if err != nil {
		return access.ClusterRef{}, err
	}
	call := c.Call()
	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: call.Namespace, Name: secretName(spec),
			Annotations: map[string]string{AccessAnnotation: call.RunKey(), clusterAnnotation: clusterAnnotationValue(manager, spec)},
		},
		Data: map[string][]byte{"value": data},
	}
	err = on.Kube.Do(c, "write Secret "+call.Namespace+"/"+secret.Name, func(ctx context.Context) error {
		err := on.Client.Create(ctx, secret.DeepCopy())
		if client.IgnoreAlreadyExists(err) != nil || err == nil {
			return err
		}
		var old corev1.Secret
		if err := on.Client.Get(ctx, client.ObjectKeyFromObject(secret), &old); err != nil {
			return err
		}
		if old.Annotations[AccessAnnotation] == "" {
			return task.Final(errors.New("it exists, but no run created it: delete or rename it"))
		}
		if belongsToAnother(&old, manager, spec) {
			return task.Final(fmt.Errorf("it contains the kubeconfig of cluster %s: run the workflow in another namespace, or delete the Secret if it is "+
				"no longer used", old.Annotations[clusterAnnotation]))
		}
		maps.Copy(old.Annotations, secret.Annotations)
		old.Data = secret.Data
		return on.Client.Update(ctx, &old)
	})
	if err != nil {
		return access.ClusterRef{}, err
	}
	return access.ClusterRef{KubeconfigSecretRef: &access.SecretKey{Name: secret.Name}}, nil
}
