package kube

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Delete deletes the object with the UID, and leaves what it owns to the garbage collector. It returns true where the answer
// says that the object no longer exists. Otherwise finalizers may still hold it.
func (c *Cluster) Delete(ctx context.Context, t Type, namespace, name string, uid types.UID) (gone bool, err error) {
	background := metav1.DeletePropagationBackground
	body, err := json.Marshal(metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
	if err != nil {
		return false, fmt.Errorf("encoding the deletion of %s %s: %w", t.Kind, name, err)
	}
	var answer struct{ Kind, Status string }
	err = c.Do(ctx, "delete "+t.Kind+" "+name, func(ctx context.Context) error {
		result := c.discovery.RESTClient().Delete().AbsPath(t.path(namespace, name)).
			SetHeader("Accept", partialAnswer).SetHeader("Content-Type", "application/json").Body(body).Do(ctx)
		if err := result.Error(); err != nil { // Raw's error does not have what the server says
			return err
		}
		raw, err := result.Raw()
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, &answer)
	})
	// A server answers with a Status where it has removed the object, and with the object where finalizers hold it.
	return err == nil && answer.Kind == "Status" && answer.Status == metav1.StatusSuccess, err
}

// partialAnswer asks for the metadata alone of what a request would otherwise answer with whole.
const partialAnswer = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
