package rotation

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Env is the name of the environment variable.
const Env = "ROTATION"

// Share is a part of a matrix: the cases whose number leaves the remainder First when it is divided by Of.
type Share struct{ First, Of int }

// Takes says whether the share has case i.
func (s Share) Takes(i int) bool { return i%s.Of == s.First }

// share is that of a run, of a matrix that is cut into so many.
func share(env string, of int) (Share, error) {
	if env == "" || env == "all" {
		return Share{0, 1}, nil
	}
	n, err := strconv.Atoi(env)
	if err != nil || n < 1 {
		return Share{}, fmt.Errorf("%s is %q: it must be a number from 1 on, or all", Env, env)
	}
	return Share{(n - 1) % of, of}, nil
}

// Of returns the share of this run, of a matrix whose cases have numbers and which is cut into so many shares; what says what
// is numbered. The test's output says what was taken.
func Of(t testing.TB, of int, what string) Share {
	t.Helper()
	s, err := share(os.Getenv(Env), of)
	if err != nil {
		t.Fatal(err)
	}
	if s.Of > 1 {
		t.Logf("rotation %d of %d: took one in %d of %s; `make test-full` runs all", s.First+1, s.Of, s.Of, what)
	}
	return s
}

// Cases returns this run's share of cases, cut into so many shares in the order of their names. The test's output says which.
func Cases[T any](t testing.TB, of int, all map[string]T) map[string]T {
	t.Helper()
	s, err := share(os.Getenv(Env), of)
	if err != nil {
		t.Fatal(err)
	}
	taken := cut(s, all)
	if s.Of > 1 {
		t.Logf("rotation %d of %d: took %s; `make test-full` runs all", s.First+1, s.Of, strings.Join(slices.Sorted(maps.Keys(taken)), ", "))
	}
	return taken
}

func cut[T any](s Share, all map[string]T) map[string]T {
	taken := map[string]T{}
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if s.Takes(i) {
			taken[name] = all[name]
		}
	}
	return taken
}
