package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/workflow/task"
)

// Data returns the content of a ConfigMap or Secret.
func (cl *Cluster) Data(ctx context.Context, kind string, key types.NamespacedName) (map[string][]byte, error) {
	var secret corev1.Secret
	var configMap corev1.ConfigMap
	err := cl.Kube.Do(ctx, "get "+kind+" "+key.String(), func(ctx context.Context) error {
		if kind == "Secret" {
			return cl.Client.Get(ctx, key, &secret)
		}
		return cl.Client.Get(ctx, key, &configMap)
	})
	if err != nil || kind == "Secret" {
		return secret.Data, err
	}
	values := make(map[string][]byte)
	maps.Copy(values, configMap.BinaryData)
	for name, text := range configMap.Data {
		values[name] = []byte(text)
	}
	return values, nil
}

// ReadKey reads one key of a ConfigMap or Secret on the run's own cluster. ref may omit the key if
// the object has only one.
func (cs *Clusters) ReadKey(ctx context.Context, c *task.Call, kind string, ref *SecretKey) ([]byte, error) {
	if ref.Namespace != "" && ref.Namespace != c.Namespace && !cs.Local {
		return nil, task.Final(errors.New("namespace: only a local run can use another namespace"))
	}
	own, err := cs.Open(ctx, c, ClusterRef{})
	if err != nil {
		return nil, err
	}
	key := types.NamespacedName{Namespace: cmp.Or(ref.Namespace, c.Namespace), Name: ref.Name}
	values, err := own.Data(ctx, kind, key)
	if err != nil {
		return nil, FinalIfRefused(err)
	}
	if ref.Key == "" && len(values) == 1 {
		for _, v := range values {
			return v, nil
		}
	}
	if v, ok := values[ref.Key]; ok && len(v) > 0 {
		return v, nil
	}
	if ref.Key == "" {
		return nil, fmt.Errorf("%s %s has %d keys: name one in key", kind, key, len(values))
	}
	return nil, fmt.Errorf("%s %s has no key %q", kind, key, ref.Key)
}
