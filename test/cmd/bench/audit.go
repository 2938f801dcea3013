package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"scute.dev/test/scuted"
)

// accounts is the prefix of the daemon's user names, on the side where it runs and on the target of a move.
const accounts = "system:serviceaccount:" + scuted.Namespace + ":scute"

// requests counts the daemon's requests.
type requests struct {
	watches int // started, including restarts after the API server ended them
	leases  int // of the leader's Lease
	other   int
	by      map[string]int // other, by verb and resource
	verbs   map[string]int // other, by verb; dry runs are separate
}

// auditSize returns the size of an audit log, where a count begins.
func auditSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("reading the audit log: %w", err)
	}
	return info.Size(), nil
}

// requestsSince counts the daemon's requests in the audit log from an offset on.
func requestsSince(path string, from int64) (*requests, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	r := &requests{by: make(map[string]int), verbs: make(map[string]int)}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Stage, Verb, RequestURI string
			User                    struct{ Username string }
			ObjectRef               struct{ Resource, Subresource string }
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			break // a line that is being written
		}
		if strings.HasPrefix(e.User.Username, accounts) {
			r.count(e.Stage, e.Verb, e.ObjectRef.Resource, e.RequestURI)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return r, nil
}

func (r *requests) count(stage, verb, resource, uri string) {
	switch {
	case verb == "watch" && stage == "ResponseStarted":
		r.watches++
	case stage != "ResponseComplete", verb == "watch":
	case resource == "leases":
		r.leases++
	default:
		r.other++
		if resource == "" {
			resource = uri
		}
		if strings.Contains(uri, "dryRun=All") {
			verb += " in a dry run"
		}
		r.by[verb+" "+resource]++
		r.verbs[verb]++
	}
}

// perObject returns how many requests of each verb were made per object.
func (r *requests) perObject(objects int) string {
	var parts []string
	for _, verb := range slices.Sorted(maps.Keys(r.verbs)) {
		parts = append(parts, fmt.Sprintf("%s %.2f", verb, float64(r.verbs[verb])/float64(objects)))
	}
	return strings.Join(parts, ", ")
}

func (r *requests) String() string {
	var parts []string
	for what, n := range r.by {
		parts = append(parts, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(parts)
	return fmt.Sprintf("%d watches begun, %d of leases, %d others: %s", r.watches, r.leases, r.other, strings.Join(parts, ", "))
}
