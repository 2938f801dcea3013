package source

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Source is where things of a kind are read from.
type Source[T any] interface {
	// Get reads the newest one of a name; ErrNotFound if there is none. Without a namespace, which only a log allows, it is
	// looked for in all.
	Get(ctx context.Context, key types.NamespacedName) (T, error)
	// List reads those of a namespace, "" for all, by namespace and name.
	List(ctx context.Context, namespace string) ([]T, error)
	// Watch calls fn with the thing as it is, and again whenever it has changed, until fn says that it has seen enough. A
	// broken connection is restored. What fn is given may be changed by what comes next.
	Watch(ctx context.Context, key types.NamespacedName, fn func(T) (enough bool)) error
	// WatchAll is Watch of a List.
	WatchAll(ctx context.Context, namespace string, fn func([]T) (enough bool)) error
}

var (
	// ErrNotFound says that there is nothing of that name.
	ErrNotFound = errors.New("there is none")
	// ErrGone says that what was watched was deleted. It is an ErrNotFound too.
	ErrGone = errors.New("it was deleted")
	// ErrStill says that something is not over and that nothing can change it while we look: nobody drives it.
	ErrStill = errors.New("nobody drives it")
)

// missing says what was looked for, and where.
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

// Is makes it an ErrNotFound, and an ErrGone when it was there before.
func (m *missing) Is(target error) bool {
	return target == ErrNotFound || m.gone && target == ErrGone
}
