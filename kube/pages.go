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
	// maxPages bounds the pages of one list, to a million objects, because an API server may report one more page without end.
	maxPages = 2000
	// pageShrinkFactor divides the page size after a page was too large. A page counts as at least least objects.
	pageShrinkFactor = 10
	minPageCount     = pageSize / pageShrinkFactor
)

// EachPage reads a list page by page, with a client whose pages are bounded (guard.BoundPages). If a page is too large, or there is no room for it,
// Pages retries with a smaller one. page returns the continue token, or "" at the end. list names the list in an error.
func EachPage(list string, page func(metav1.ListOptions) (next string, err error)) error {
	o := metav1.ListOptions{Limit: pageSize}
	for left := int64(maxPages * pageSize); left > 0; left -= max(o.Limit, minPageCount) {
		next, err := page(o)
		switch {
		case (errors.Is(err, guard.ErrTooLarge) || errors.Is(err, guard.ErrBusy)) && o.Limit > 1:
			o.Limit = max(o.Limit/pageShrinkFactor, 1)
		case err != nil || next == "":
			return err
		default:
			o.Continue, o.Limit = next, min(2*o.Limit, pageSize)
		}
	}
	return fmt.Errorf("%s: %w: more than %d pages", list, guard.ErrTooLarge, maxPages)
}

func (c *Cluster) eachPage(ctx context.Context, t Type, page func(context.Context, metav1.ListOptions) (string, error)) error {
	return EachPage(c.Name+": list "+t.Plural, func(o metav1.ListOptions) (next string, err error) {
		err = c.Do(ctx, "list "+t.Plural, func(ctx context.Context) (err error) {
			next, err = page(ctx, o)
			return err
		})
		return next, err
	})
}
