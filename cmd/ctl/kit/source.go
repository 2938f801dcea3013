package kit

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Source reads objects of a kind.
type Source[T any] interface {
	// Get reads the newest object of a name, or returns ErrNotFound. Only a log permits an empty
	// namespace, which means all.
	Get(ctx context.Context, key types.NamespacedName) (T, error)
	// List reads the objects of a namespace ("" for all), sorted by namespace and name.
	List(ctx context.Context, namespace string) ([]T, error)
	// Watch calls fn with the current object, and again after each change, until fn returns true.
	// It restores broken connections.
	Watch(ctx context.Context, key types.NamespacedName, fn func(T) (enough bool)) error
	// WatchAll works like Watch, with the result of List.
	WatchAll(ctx context.Context, namespace string, fn func([]T) (enough bool)) error
}

var (
	// ErrNotFound means that no object has that name.
	ErrNotFound = errors.New("not found")
	// ErrGone means that a watched object was deleted. It is also an ErrNotFound.
	ErrGone = errors.New("it was deleted")
	// errNotDriven means that an unfinished object cannot change, because no process drives it.
	errNotDriven = errors.New("no process drives it")
)

type missing struct {
	noun  string
	key   types.NamespacedName
	where string
	gone  bool
}

func (m *missing) Error() string {
	name := m.noun + " " + m.key.Name
	if m.key.Namespace != "" {
		name += " in namespace " + m.key.Namespace
	}
	return fmt.Sprintf("%s: there is no such %s %s", name, m.noun, m.where)
}

// Is matches ErrNotFound, and ErrGone if the object existed before.
func (m *missing) Is(target error) bool {
	return target == ErrNotFound || m.gone && target == ErrGone
}
