package kube

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/kube/guard"
)

const (
	pageSize = 500
	// mostPages of one list are read: a million objects. An API server may say without end that there is one more.
	mostPages = 2000
	// smaller is the part of a page that that is asked for where a whole one is too large; it counts as least objects.
	smaller = 10
	least   = pageSize / smaller
)

// Pages reads a list page by page, by a client whose pages are bounded (guard.BoundPages): of objects that are too large for a page, or for
// which there is no room, it asks for fewer at once. page returns where the next one begins, "" for nowhere. list is how an error calls it.
func Pages(list string, page func(metav1.ListOptions) (next string, err error)) error {
	o := metav1.ListOptions{Limit: pageSize}
	for left := int64(mostPages * pageSize); left > 0; left -= max(o.Limit, least) {
		next, err := page(o)
		switch {
		case (errors.Is(err, guard.ErrTooLarge) || errors.Is(err, guard.ErrNoRoom)) && o.Limit > 1:
			o.Limit = max(o.Limit/smaller, 1)
		case err != nil || next == "":
			return err
		default:
			o.Continue, o.Limit = next, min(2*o.Limit, pageSize)
		}
	}
	return fmt.Errorf("%s: %w: more than %d pages", list, guard.ErrTooLarge, mostPages)
}

func (c *Cluster) pages(ctx context.Context, t Type, page func(context.Context, metav1.ListOptions) (string, error)) error {
	return Pages(c.Name+": list "+t.Plural, func(o metav1.ListOptions) (next string, err error) {
		err = c.Do(ctx, "list "+t.Plural, func(ctx context.Context) (err error) {
			next, err = page(ctx, o)
			return err
		})
		return next, err
	})
}
