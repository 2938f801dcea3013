package trust

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/guard"
)

// pages is an API server that lists objects in pages.
type pages struct {
	client.Reader
	statuses  map[string][]any
	errs      map[string]error
	requests  int
	pageLimit int // number of objects that fit into a page, if limited
}

func (p *pages) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	list, o := into.(*unstructured.UnstructuredList), (&client.ListOptions{}).ApplyOptions(opts)
	kind := list.GetKind()[:len(list.GetKind())-len("List")]
	if err := p.errs[kind]; err != nil {
		return err
	}
	if o.Limit <= 0 || o.Limit > pageSize {
		return errors.New("a list without a bound")
	}
	p.requests++
	if p.pageLimit > 0 && int(o.Limit) > p.pageLimit {
		return guard.ErrTooLarge
	}
	from, _ := strconv.Atoi(o.Continue)
	all := p.statuses[kind]
	to := min(from+int(o.Limit), len(all))
	for _, status := range all[from:to] {
		list.Items = append(list.Items, unstructured.Unstructured{Object: map[string]any{"status": status}})
	}
	if to < len(all) {
		list.SetContinue(strconv.Itoa(to))
	}
	return nil
}

func statusAt(logID string, seq any) any { return map[string]any{"logID": logID, "logSequence": seq} }

func TestMark(t *testing.T) {
	many := slices.Repeat([]any{statusAt("own", int64(3))}, 2*pageSize)
	missing := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "scute.dev", Kind: Remediations}}
	for name, c := range map[string]struct {
		server pages
		want   Watermark
		asked  int
	}{
		"nothing there":      {pages{}, Watermark{}, 4},
		"of this log":        {pages{statuses: map[string][]any{Moves: {statusAt("own", int64(7)), statusAt("own", int64(5))}, WorkflowRuns: {statusAt("own", int64(6))}}}, Watermark{LogID: "own", Sequence: 7}, 4},
		"of a Pause":         {pages{statuses: map[string][]any{Moves: {statusAt("own", int64(7))}, Pauses: {statusAt("own", int64(8))}}}, Watermark{LogID: "own", Sequence: 8}, 4},
		"of another log":     {pages{statuses: map[string][]any{Moves: {statusAt("other", int64(9)), statusAt("", int64(8)), nil}}}, Watermark{}, 4},
		"on the third page":  {pages{statuses: map[string][]any{Remediations: append(many, statusAt("own", int64(9)))}}, Watermark{LogID: "own", Sequence: 9}, 6},
		"cannot be read":     {pages{statuses: map[string][]any{Moves: {statusAt("own", "9"), statusAt("own", 9.5), []any{"own"}, statusAt("own", int64(2))}}}, Watermark{LogID: "own", Sequence: 2}, 4},
		"below zero":         {pages{statuses: map[string][]any{Moves: {statusAt("own", int64(-9))}}}, Watermark{}, 4},
		"a kind not mapped":  {pages{statuses: map[string][]any{Moves: {statusAt("own", int64(4))}}, errs: map[string]error{Remediations: missing}}, Watermark{LogID: "own", Sequence: 4}, 3},
		"a kind not served":  {pages{statuses: map[string][]any{Moves: {statusAt("own", int64(4))}}, errs: map[string]error{WorkflowRuns: apierrors.NewNotFound(schema.GroupResource{}, "")}}, Watermark{LogID: "own", Sequence: 4}, 3},
		"without any status": {pages{statuses: map[string][]any{Moves: {nil}}}, Watermark{}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := HighestMark(t.Context(), &c.server, "own", Moves, WorkflowRuns, Pauses, Remediations)
			if err != nil || got != c.want {
				t.Errorf("HighestMark = %v, want %v; error %v", got, c.want, err)
			}
			if c.server.requests != c.asked {
				t.Errorf("%d pages were read, want %d", c.server.requests, c.asked)
			}
		})
	}
	large := &pages{statuses: map[string][]any{WorkflowRuns: append(many, statusAt("own", int64(9)))}, pageLimit: 7}
	if got, err := HighestMark(t.Context(), large, "own", WorkflowRuns); err != nil || got.Sequence != 9 {
		t.Errorf("HighestMark with large objects = %v, error %v", got, err)
	}
	refused := errors.New("refused")
	if _, err := HighestMark(t.Context(), &pages{errs: map[string]error{WorkflowRuns: refused}}, "own", Moves, WorkflowRuns); !errors.Is(err, refused) {
		t.Errorf("HighestMark with a failed list = %v, want the error", err)
	}
}
