package resource_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/controllertest"
	"scute.dev/controllers/resource"
)

// TestACacheThatLagsEndsNothing checks that nothing is ended because of an outdated cache, as what has ended cannot be
// continued.
func TestACacheThatLagsEndsNothing(t *testing.T) {
	t.Parallel()
	const own, earlier = "fleet/prod/2", "fleet/prod/1"
	for name, c := range map[string]struct {
		cached, live types.UID
		silent       bool
		open, want   []string
		refused      bool
		asked        int
	}{
		"it is gone":                            {open: []string{earlier, own}, want: []string{earlier, own}, asked: 1},
		"an earlier one of the name is gone":    {cached: "2", live: "2", open: []string{earlier, own}, want: []string{earlier}, asked: 1},
		"the cache does not have it yet":        {live: "2", open: []string{own}, refused: true, asked: 1},
		"the cache has the one before":          {cached: "1", live: "2", open: []string{earlier, own}, refused: true, asked: 1},
		"the API server does not answer":        {silent: true, open: []string{own}, refused: true, asked: 1},
		"nothing but its own is open":           {cached: "2", live: "2", open: []string{own}},
		"it is gone, and nothing of it is open": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			api := interceptor.NewClient(controllertest.Client(t, &v1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod", UID: c.live}}), interceptor.Funcs{
				Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					asked++
					if c.silent {
						return errors.New("no answer")
					}
					return api.Get(ctx, key, o, opts...)
				},
			})
			key := client.ObjectKey{Namespace: "fleet", Name: "prod"}
			if c.live == "" {
				key.Name = "absent"
			}
			var ended []string
			name := resource.Orphans{Kind: "Move", Key: key, UID: c.cached, Open: c.open, Own: own}
			err := name.End(t.Context(), api, func(_ context.Context, id, actor, reason string) error {
				if reason != "its Move was deleted" || actor != "resource/"+key.String() {
					t.Errorf("actor %s, reason = %s", actor, reason)
				}
				ended = append(ended, id)
				return nil
			})
			if (err != nil) != c.refused || !slices.Equal(ended, c.want) || asked != c.asked {
				t.Errorf("ended %v, error %v, %d requests; want %v, error %v, %d requests", ended, err, asked, c.want, c.refused, c.asked)
			}
		})
	}
}
