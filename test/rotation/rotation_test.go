package rotation

import (
	"fmt"
	"strconv"
	"testing"
)

// TestACycleCoversAll checks that over a cycle, which may begin on any day, every case is selected once, and that the
// days differ by at most one case.
func TestACycleCoversAll(t *testing.T) {
	for of := 1; of <= 8; of++ {
		for size := range 20 {
			all := map[string]int{}
			for i := range size {
				all[fmt.Sprintf("case %d", i)] = i
			}
			taken := map[string]int{}
			for day := 20_000; day < 20_000+of; day++ {
				s, err := share(strconv.Itoa(day), of)
				if err != nil {
					t.Fatal(err)
				}
				today := cut(s, all)
				if n := len(today); n < size/of || n > (size+of-1)/of {
					t.Errorf("day %d of %d selects %d of %d cases", day, of, n, size)
				}
				for name := range today {
					taken[name]++
				}
			}
			for name := range all {
				if taken[name] != 1 {
					t.Errorf("%d shares: %s of %d is selected %d times", of, name, size, taken[name])
				}
			}
		}
	}
}

func TestShare(t *testing.T) {
	for env, want := range map[string]Share{"": {0, 1}, "all": {0, 1}, "1": {0, 5}, "3": {2, 5}, "5": {4, 5}, "6": {0, 5}} {
		if got, err := share(env, 5); err != nil || got != want {
			t.Errorf("share(%q) = %v, %v, want %v", env, got, err, want)
		}
	}
	for _, env := range []string{"0", "-1", "some", "1 2"} {
		if s, err := share(env, 5); err == nil {
			t.Errorf("share(%q) = %v, want an error", env, s)
		}
	}
}
