package job

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// TestLogsOfPods checks that only a local run stores the logs of pods in its folder. In the daemon this folder has the
// log of all runs, which Jobs that fail repeatedly must not fill.
func TestLogsOfPods(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/log") {
			fmt.Fprint(w, "no such file")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"namespace":"fleet","name":"p"},"spec":{"containers":[{"name":"c"}]}}]}`)
	}))
	defer server.Close()
	for _, local := range []bool{true, false} {
		c := &task.Call{Task: "smoke", Attempt: 1, Dir: t.TempDir()}
		said := podLogs(t.Context(), &access.Cluster{Config: &rest.Config{Host: server.URL}}, c, access.ObjectRef{Namespace: "fleet", Name: "j"}, local)
		files, err := os.ReadDir(c.Dir)
		if err != nil || (len(files) > 0) != local || !strings.Contains(said, "no such file") {
			t.Errorf("local %v: %d files, result %q, error %v", local, len(files), said, err)
		}
	}
}

// TestLogsAreBounded checks that the size of a Job's logs does not grow with the containers of its pods.
func TestLogsAreBounded(t *testing.T) {
	const containers = 64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/log") {
			fmt.Fprint(w, strings.Repeat("no such file\n", 10_000))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"namespace":"fleet","name":"p"},"spec":{"containers":[%s{"name":"c"}]}}]}`,
			strings.Repeat(`{"name":"c"},`, containers-1))
	}))
	defer server.Close()
	text, err := readPodLogs(t.Context(), &access.Cluster{Config: &rest.Config{Host: server.URL}}, access.ObjectRef{Namespace: "fleet", Name: "j"})
	if most := int(podLogsBytes) + containers*len("--- p/c\n\n"); err != nil || len(text) > most || strings.Count(text, "--- p/c\n") != containers {
		t.Errorf("%d bytes of logs, want at most %d; error %v", len(text), most, err)
	}
}

// TestWhatThePodOfAJobSays checks that the message of a running Job's task has its newest pod and the last line of that
// pod's log.
func TestWhatThePodOfAJobSays(t *testing.T) {
	for name, c := range map[string]struct{ pods, want string }{
		"none yet": {"", ""},
		"running": {
			`{"metadata":{"namespace":"fleet","name":"old","creationTimestamp":"2026-11-29T10:00:00Z"},"spec":{"containers":[{"name":"c"}]},"status":{"phase":"Failed"}},
			{"metadata":{"namespace":"fleet","name":"new","creationTimestamp":"2026-11-29T11:00:00Z"},"spec":{"containers":[{"name":"c"}]},"status":{"phase":"Running"}}`,
			"; pod new is Running: 3 of 5 checked",
		},
		"waiting": {`{"metadata":{"namespace":"fleet","name":"p"},"spec":{"containers":[{"name":"c"}]},
			"status":{"phase":"Pending","containerStatuses":[{"name":"c","state":{"waiting":{"reason":"ImagePullBackOff"}}}]}}`, "; pod p is Pending, c is waiting: ImagePullBackOff"},
		"not allowed": {"-", "; its pods cannot be listed"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case strings.HasSuffix(r.URL.Path, "/new/log") && r.FormValue("tailLines") == "1":
					fmt.Fprint(w, "3 of 5 checked\n")
				case c.pods == "-" || strings.HasSuffix(r.URL.Path, "/log"):
					w.WriteHeader(http.StatusForbidden)
				default:
					fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","items":[%s]}`, c.pods)
				}
			}))
			defer server.Close()
			got := podSummary(t.Context(), &access.Cluster{Config: &rest.Config{Host: server.URL}}, access.ObjectRef{Namespace: "fleet", Name: "j"})
			if got != c.want {
				t.Errorf("podSays = %q, want %q", got, c.want)
			}
		})
	}
}
