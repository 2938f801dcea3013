package kube

import (
	"context"
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TryDelete deletes an object in a dry run. It sends the dry run in the query alone: a proxy may drop the body of a DELETE, and the request would
// then delete the object.
func (c *Cluster) TryDelete(ctx context.Context, t Type, namespace, name string) error {
	return c.Do(ctx, "try to delete "+t.Kind+" "+name, func(ctx context.Context) error {
		return c.discovery.RESTClient().Delete().AbsPath(t.path(namespace, name)).Param("dryRun", metav1.DryRunAll).Do(ctx).Error()
	})
}

// path returns the URL path of an object.
func (t Type) path(namespace, name string) string {
	base := path.Join("/apis", t.Group, t.Versions[0])
	if t.Group == "" {
		base = path.Join("/api", t.Versions[0])
	}
	if t.Namespaced {
		base = path.Join(base, "namespaces", namespace)
	}
	return path.Join(base, t.Plural, name)
}
