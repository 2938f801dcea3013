package app

import (
	"context"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
)

// unreadable counts the objects of scute's kinds that cannot be read, in the caches that hold them anyway. The zero value
// counts nothing.
type unreadable struct {
	mu   sync.Mutex
	kept []kept
}

// kept is a kind that a cache holds.
type kept struct {
	cache client.Reader
	list  client.ObjectList
}

// in adds kinds, by empty lists of them.
func (u *unreadable) in(cache client.Reader, lists ...client.ObjectList) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, list := range lists {
		u.kept = append(u.kept, kept{cache, list})
	}
}

// count is the number of unreadable objects by kind; a kind whose cache is not synced is left out.
func (u *unreadable) count(ctx context.Context) map[string]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	counts := make(map[string]int)
	for _, k := range u.kept {
		list, ok := k.list.DeepCopyObject().(client.ObjectList)
		if !ok || k.cache.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
			continue
		}
		kind := strings.TrimSuffix(reflect.TypeOf(list).Elem().Name(), "List")
		counts[kind] = 0
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			if stored, ok := o.(interface {
				Unread() *v1alpha1.UnreadablePart
			}); ok && stored.Unread() != nil {
				counts[kind]++
			}
			return nil
		})
	}
	return counts
}
