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
	// mostPages bounds the pages of one list, to a million objects, because an API server may report one more page without end.
	mostPages = 2000
	// smaller divides the page size after a page was too large. A page counts as at least least objects.
	smaller = 10
	least   = pageSize / smaller
)

// Pages reads a list page by page, with a client whose pages are bounded (guard.BoundPages). If a page is too large, or there is no room for it,
// Pages retries with a smaller one. page returns the continue token, or "" at the end. list names the list in an error.
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
