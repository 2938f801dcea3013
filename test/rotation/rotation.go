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

// Share is a share of a matrix: the cases whose number modulo Of is First.
type Share struct{ First, Of int }

// Takes reports whether the share contains case i.
func (s Share) Takes(i int) bool { return i%s.Of == s.First }

// share returns the share of this run for a matrix with a number of shares.
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

// Of returns the share of this run for a matrix of numbered cases with a number of shares. what describes the cases.
// The test logs the selection.
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

// Cases returns the share of this run of the cases, in the order of their names. The test logs the selection.
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
