package access

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/workflow/task"
)

// in returns the name of the Secret for a run in a namespace.
func (k *SecretKey) in(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(k.Namespace, namespace), Name: k.Name}
}

// ReadData reads all keys of a ConfigMap or Secret on the run's own cluster.
func (cs *Clusters) ReadData(ctx context.Context, c *task.Call, kind string, ref *SecretKey) (map[string][]byte, error) {
	if ref.Namespace != "" && ref.Namespace != c.Namespace && !cs.Local {
		return nil, task.Final(errors.New("namespace: only a local run can use another namespace"))
	}
	own, err := cs.Open(ctx, c, ClusterRef{})
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("v1")
	u.SetKind(kind)
	key := ref.in(c.Namespace)
	err = own.Kube.Do(ctx, "get "+kind+" "+key.String(), func(ctx context.Context) error { return own.Client.Get(ctx, key, u) })
	if err != nil {
		return nil, err
	}
	values := make(map[string][]byte)
	for _, data := range []string{"data", "binaryData"} {
		found, _, _ := unstructured.NestedMap(u.Object, data)
		for name, v := range found {
			text, _ := v.(string)
			values[name] = []byte(text)
			if kind == "Secret" || data == "binaryData" {
				if values[name], err = base64.StdEncoding.DecodeString(text); err != nil {
					return nil, fmt.Errorf("%s %s: key %q is not base64", kind, key, name)
				}
			}
		}
	}
	return values, nil
}

// ReadKey reads one key of a ConfigMap or Secret on the run's own cluster.
func (cs *Clusters) ReadKey(ctx context.Context, c *task.Call, kind string, ref *SecretKey) ([]byte, error) {
	values, err := cs.ReadData(ctx, c, kind, ref)
	if err != nil {
		return nil, FinalIfRefused(err)
	}
	key := ref.in(c.Namespace)
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
