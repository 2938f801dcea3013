package move

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"scute.dev/api/v1alpha1"
	controller "scute.dev/controllers/move"
	"scute.dev/mover"
)

// TestFromLogIsTheInverseOfTheRequest checks that converting a request to a resource and back gives the same request.
func TestFromLogIsTheInverseOfTheRequest(t *testing.T) {
	name := rapid.StringMatching(`[a-z]{1,8}`)
	duration := rapid.Map(rapid.Int64Range(1, 1e6), func(s int64) mover.Duration { return mover.Duration(s * int64(time.Second)) })
	rapid.Check(t, func(t *rapid.T) {
		want := mover.Spec{
			Namespace: name.Draw(t, "namespace"), Name: name.Draw(t, "name"),
			Target: mover.Target{SecretName: name.Draw(t, "secret"), SecretKey: name.Draw(t, "key")},
			DryRun: rapid.Bool().Draw(t, "dryRun"), KeepFailed: rapid.Bool().Draw(t, "keepFailed"),
			Acknowledge: duration.Draw(t, "acknowledge"), Create: duration.Draw(t, "create"), Resume: duration.Draw(t, "resume"),
		}
		if want.All = rapid.Bool().Draw(t, "all"); !want.All {
			want.Clusters = rapid.SliceOfN(name, 1, 3).Draw(t, "clusters")
		}
		if rapid.Bool().Draw(t, "kinds") {
			want.AckKinds = map[string]mover.Duration{"Machine.cluster.x-k8s.io": duration.Draw(t, "kind")}
		}
		got := controller.Spec(fromLog(want, v1alpha1.MoveStatus{}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}
