package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyFile creates the objects of a file. It waits until the kinds are served.
func applyFile(ctx context.Context, c client.Client, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(u.Object) == 0 {
			continue
		}
		for {
			err := c.Create(ctx, u.DeepCopy())
			if err == nil || apierrors.IsAlreadyExists(err) {
				break
			}
			if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) || ctx.Err() != nil {
				return fmt.Errorf("%s: creating %s %s: %w", file, u.GetKind(), u.GetName(), err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}
