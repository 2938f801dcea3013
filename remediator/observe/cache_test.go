package observe

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestCacheIsBounded checks that the cache keeps little of the largest objects that a tenant can store, for every kind
// that it watches.
func TestCacheIsBounded(t *testing.T) {
	large := strings.Repeat("y", 200<<10)
	names := make([]string, 20_000)
	for i := range names {
		names[i] = fmt.Sprintf(`"x.y/n%d"`, i)
	}
	stored := fmt.Sprintf(`{"metadata":{"name":"o","namespace":"n","annotations":{"x.y/z":%q},"managedFields":[{"manager":"m","fieldsV1":{"a":%q}}],`+
		`"labels":{%s:"v"},"ownerReferences":[{"name":%s}],"finalizers":[%s]},"spec":{"selector":{"matchLabels":{"a":%q}},"clusterName":"c"}}`,
		large, large, strings.Join(names, `:"v",`), strings.Join(names, `},{"name":`), strings.Join(names, ","), large)
	for o, kind := range watchedKinds() {
		if err := json.Unmarshal([]byte(stored), o); err != nil {
			t.Fatal(err)
		}
		if _, err := kind.Transform(o); err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(o); err != nil || len(text) > 2000 {
			t.Errorf("%T has %d bytes in the cache, want at most 2000: %.300s, %v", o, len(text), text, err)
		}
	}
}
