package runs

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Source is where runs are read from.
type Source interface {
	// Get reads the newest run of a name; ErrNotFound if there is none. Without a namespace it is looked for in all.
	Get(ctx context.Context, key types.NamespacedName) (*Run, error)
	// List reads the newest run of each name of a namespace, "" for all.
	List(ctx context.Context, namespace string) ([]*Run, error)
	// Watch calls fn with the run as it is, and again whenever it has changed, until fn says that it has seen enough.
	// The run that fn is given is changed by what comes next.
	Watch(ctx context.Context, key types.NamespacedName, fn func(*Run) (enough bool)) error
}

// ErrNotFound says that there is no run of that name.
var ErrNotFound = errors.New("there is no such run")

// ErrStill says that a run is not over and that nothing can change it while we look: nobody drives it.
var ErrStill = errors.New("no process drives it")

func notFound(key types.NamespacedName, where string) error {
	if key.Namespace == "" {
		return fmt.Errorf("run %s: %w %s", key.Name, ErrNotFound, where)
	}
	return fmt.Errorf("run %s in namespace %s: %w %s", key.Name, key.Namespace, ErrNotFound, where)
}
