// This file contains the writes. They request only the metadata of an object as the response,
// because it may be large.

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"scute.dev/kube/object"
)

// Create creates an object, or only validates the request if dryRun is set, and returns the
// object's metadata.
func (c *Cluster) Create(ctx context.Context, t Type, u *unstructured.Unstructured, dryRun ...string) (created *unstructured.Unstructured, err error) {
	body, err := u.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", t.Kind, u.GetName(), err)
	}
	err = c.Do(ctx, "create "+t.Kind+" "+u.GetName(), func(ctx context.Context) error {
		request := c.discovery.RESTClient().Post().AbsPath(t.path(u.GetNamespace(), "")).Param("fieldManager", FieldManager)
		for _, value := range dryRun {
			request = request.Param("dryRun", value)
		}
		created = &unstructured.Unstructured{}
		return sendAndDecode(ctx, request, body, &created.Object)
	})
	if err != nil {
		return nil, err
	}
	created.SetGroupVersionKind(t.GVK())
	return created, nil
}

// Patch sends a merge patch, or only validates it if dryRun is set. what describes the patch in an
// error.
func (c *Cluster) Patch(ctx context.Context, what string, t Type, ref object.Ref, patch map[string]any, dryRun ...string) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding a patch of %s: %w", ref, err)
	}
	r := c.metadata.Resource(t.Resource()).Namespace(t.scope(ref.Namespace))
	return c.Do(ctx, what, func(ctx context.Context) error {
		_, err := r.Patch(ctx, ref.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager, DryRun: dryRun})
		return err
	})
}

// Delete deletes the object with the UID. The garbage collector deletes the object's dependents.
// gone reports whether the object no longer exists; otherwise it may have finalizers.
func (c *Cluster) Delete(ctx context.Context, t Type, namespace, name string, uid types.UID) (gone bool, err error) {
	background := metav1.DeletePropagationBackground
	body, err := json.Marshal(metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
	if err != nil {
		return false, fmt.Errorf("encoding the deletion of %s %s: %w", t.Kind, name, err)
	}
	var answer struct {
		Kind string `json:"kind"`
	}
	err = c.Do(ctx, "delete "+t.Kind+" "+name, func(ctx context.Context) error {
		return sendAndDecode(ctx, c.discovery.RESTClient().Delete().AbsPath(t.path(namespace, name)), body, &answer)
	})
	// The response is a Status if the object is gone, and the object if finalizers hold it.
	return err == nil && answer.Kind == "Status", err
}

func sendAndDecode(ctx context.Context, request *rest.Request, body []byte, into any) error {
	result := request.SetHeader("Accept", acceptPartial).SetHeader("Content-Type", "application/json").Body(body).Do(ctx)
	if err := result.Error(); err != nil { // Raw's error lacks the server's message
		return err
	}
	raw, err := result.Raw()
	if err != nil {
		return err
	}
	return utiljson.Unmarshal(raw, into) // decodes whole numbers as int64, as objects do
}

// acceptPartial has no effect on a Status.
const acceptPartial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// TryDelete deletes an object in a dry run. It requests the dry run in the query only: a proxy may
// drop the body of a DELETE, and the request would then delete the object.
func (c *Cluster) TryDelete(ctx context.Context, t Type, namespace, name string) error {
	return c.Do(ctx, "try to delete "+t.Kind+" "+name, func(ctx context.Context) error {
		return c.discovery.RESTClient().Delete().AbsPath(t.path(namespace, name)).Param("dryRun", metav1.DryRunAll).Do(ctx).Error()
	})
}

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
