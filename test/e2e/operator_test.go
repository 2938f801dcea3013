package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// operator is a user at a shell, with scutectl and the source's kubeconfig.
type operator struct {
	namespace string
	nats      string // the address of the daemon's log
	target    string // file with the target's kubeconfig
}

// said is the output of a command and its exit status.
type said struct {
	out, err string
	code     int
}

func (o *operator) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, shared.programs.Ctl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.blue.Side.KubeconfigPath())
	return cmd
}

// run runs scutectl and checks its exit status and parts of its output, on either stream.
func (o *operator) run(ctx context.Context, t *testing.T, code int, parts []string, args ...string) said {
	t.Helper()
	cmd := o.command(ctx, args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	s := said{out: out.String(), err: complaints.String(), code: cmd.ProcessState.ExitCode()}
	if s.code != code {
		t.Errorf("scutectl %s: exit status %d, want %d\n%s%s", strings.Join(args, " "), s.code, code, s.out, s.err)
	}
	for _, part := range parts {
		if !strings.Contains(s.out+s.err, part) {
			t.Errorf("scutectl %s: output lacks %q:\n%s%s", strings.Join(args, " "), part, s.out, s.err)
		}
	}
	return s
}

// TestOperator drives a move as an operator does, with scutectl alone.
func TestOperator(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	o := &operator{namespace: "operated", target: filepath.Join(t.TempDir(), "target.kubeconfig")}
	harness.Must(t, os.WriteFile(o.target, shared.green.Target, 0o600))
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(o.namespace, "tiny"))
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	listen := ports.AddressForTest(t)
	o.nats = "nats://" + listen
	// With one call at a time, because a status has the phase at the time of its write, and each phase must be printed.
	d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir, Listen: listen, Health: ports.AddressForTest(t), Args: []string{"--move-workers", "1"}})
	harness.Must(t, d.WaitReady(ctx))

	t.Run("doctor finds all well", func(t *testing.T) {
		o.run(ctx, t, 0, []string{"ok       Cluster API", "ok       scuted", "ok       event log"}, "doctor", "--nats", o.nats)
	})
	t.Run("doctor finds a pause left behind", func(t *testing.T) {
		lift := annotation(ctx, t, shared.blue, o.namespace, "Cluster", "scute.dev/pause")
		o.run(ctx, t, 1, []string{"problem  clusters", o.namespace + "/tiny is paused by task", "remedy: "}, "doctor", "--nats", o.nats)
		lift()
		if said := o.run(ctx, t, 0, []string{"workflows"}, "doctor", "--nats", o.nats); strings.Contains(said.out, "is paused by task") {
			t.Errorf("doctor still reports the pause:\n%s", said.out)
		}
	})
	t.Run("refused", func(t *testing.T) { o.refused(ctx, t) })
	t.Run("held and aborted", func(t *testing.T) { o.aborted(ctx, t) })
	id := ""
	t.Run("moved", func(t *testing.T) { id = o.moved(ctx, t) })
	hash := ""
	t.Run("the log", func(t *testing.T) { hash = o.log(ctx, t, id) })
	t.Run("a stopped daemon", func(t *testing.T) {
		harness.Must(t, d.Stop(ctx))
		o.run(ctx, t, 1, []string{"problem  scuted", "no daemon drives moves", "remedy: "}, "doctor")
		replayed := o.run(ctx, t, 0, []string{"Succeeded"}, "log", "replay", "--aggregate", "move/"+id, "--log", dir)
		if hash == "" || !strings.Contains(replayed.out, hash) {
			t.Errorf("replay of the log's folder has another state than the running daemon, sha256 %s:\n%s", hash, replayed.out)
		}
		o.run(ctx, t, 0, []string{"moved", "Succeeded"}, "get", "move", "-n", o.namespace, "--log", dir)
	})
}

func (o *operator) create(ctx context.Context, t *testing.T, code int, parts []string, name string, args ...string) said {
	t.Helper()
	return o.run(ctx, t, code, parts, append([]string{"create", "move", name, "-n", o.namespace, "--to-kubeconfig", o.target}, args...)...)
}

func (o *operator) refused(ctx context.Context, t *testing.T) {
	o.run(ctx, t, 2, []string{"--cluster"}, "create", "move", "bad", "-n", o.namespace, "--to-kubeconfig", o.target)
	refused := o.create(ctx, t, 1, []string{"create a Move with another name"}, "bad", "-c", "nope", "-c", "neither")
	for _, part := range []string{"refused: nothing was changed", "SEVERITY", "REMEDY", "spec.selection.clusters", `"nope" does not exist`, `"neither" does not exist`, " has: tiny"} {
		if !strings.Contains(refused.out, part) {
			t.Errorf("findings lack %q:\n%s", part, refused.out)
		}
	}
	o.create(ctx, t, 1, []string{"already exists"}, "bad", "-c", "tiny")
	o.run(ctx, t, 1, []string{"Failed"}, "watch", "move", "bad", "-n", o.namespace)
	o.run(ctx, t, 1, []string{"nowhere"}, "describe", "move", "nowhere", "-n", o.namespace)

	// The Secret that scutectl created is deleted together with the Move.
	admin, err := shared.blue.Client()
	harness.Must(t, err)
	harness.Must(t, admin.Delete(ctx, &v1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "bad"}}))
	waitGone(ctx, t, shared.blue, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "bad-target"}})
}

// aborted shows a blocked move with every command, and aborts it through the log and through the resource.
func (o *operator) aborted(ctx context.Context, t *testing.T) {
	release := annotation(ctx, t, shared.blue, o.namespace, "DevCluster", "clusterctl.cluster.x-k8s.io/block-move")
	defer release()
	o.create(ctx, t, 0, []string{"move operated/held created", "preflight passed"}, "held", "-c", "tiny")
	m, err := shared.blue.Wait(ctx, o.namespace, "held", func(m *v1alpha1.Move) bool { return len(m.Status.WaitingFor) == 1 })
	harness.Must(t, err)

	o.run(ctx, t, 0, []string{"NAME", "held", "AwaitingAcks"}, "get", "move", "-n", o.namespace)
	o.run(ctx, t, 0, []string{"AwaitingAcks"}, "get", "move", "held", "-n", o.namespace, "-o", "jsonpath={.status.phase}")
	var decoded v1alpha1.Move
	if err := json.Unmarshal([]byte(o.run(ctx, t, 0, nil, "get", "move", "held", "-n", o.namespace, "-o", "json").out), &decoded); err != nil || decoded.UID != m.UID {
		t.Errorf("get move -o json: %v, UID %s", err, decoded.UID)
	}
	waits := []string{"AwaitingAcks", "Waiting for:", "DevCluster", "block-move"}
	o.run(ctx, t, 0, append(waits, "timeline is omitted"), "describe", "move", "held", "-n", o.namespace)
	o.run(ctx, t, 0, append(waits, "Timeline", "preflight passed", "paused"), "describe", "move", "held", "-n", o.namespace, "--nats", o.nats)
	o.interrupted(ctx, t)

	o.run(ctx, t, 0, []string{"abort recorded by user/", "rolling back"}, "abort", "move", "held", "-n", o.namespace, "--nats", o.nats, "--reason", "wrong direction")
	o.run(ctx, t, 1, []string{"RolledBack", "wrong direction"}, "watch", "move", "held", "-n", o.namespace)
	o.run(ctx, t, 0, []string{"rolled back"}, "abort", "move", "held", "-n", o.namespace)

	o.create(ctx, t, 0, nil, "held-again", "-c", "tiny")
	o.run(ctx, t, 0, []string{"spec.abort is set instead"}, "abort", "move", "held-again", "-n", o.namespace)
	over, err := shared.blue.Wait(ctx, o.namespace, "held-again", scuted.Over)
	harness.Must(t, err)
	if over.Status.Phase != mover.PhaseRolledBack {
		t.Errorf("phase = %s, want RolledBack: %s", over.Status.Phase, over.Status.Message)
	}
}

// interrupted checks that a user who stops watching a move does not stop the move.
func (o *operator) interrupted(ctx context.Context, t *testing.T) {
	t.Helper()
	cmd := o.command(ctx, "watch", "move", "held", "-n", o.namespace)
	out, err := cmd.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "operated/held AwaitingAcks") {
		t.Errorf("first line of watch = %q, %v", line, err)
	}
	harness.Must(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit status after SIGINT = %d, want 130", code)
	}
}

// moved moves the cluster, and returns the move's ID in the log.
func (o *operator) moved(ctx context.Context, t *testing.T) string {
	w := shared.witness(ctx, t)
	followed := o.create(ctx, t, 0, nil, "moved", "-c", "tiny", "--follow")
	at := -1
	for _, phase := range []mover.Phase{mover.PhasePausing, mover.PhaseCreating, mover.PhaseDeleting, mover.PhaseResuming, mover.PhaseSucceeded} {
		i := strings.Index(followed.out, "operated/moved "+string(phase)+":")
		if i < at || phase == mover.PhaseSucceeded && i < 0 {
			t.Errorf("phase %s is missing or out of order:\n%s", phase, followed.out)
		}
		at = max(at, i)
	}
	if strings.Contains(followed.out, "\x1b") {
		t.Errorf("escape sequences in a pipe: %q", followed.out)
	}
	o.run(ctx, t, 0, []string{"Succeeded"}, "watch", "move", "moved", "-n", o.namespace)
	o.run(ctx, t, 1, []string{"has ended", "move them from the target to this management cluster"}, "abort", "move", "moved", "-n", o.namespace)
	harness.Must(t, shared.green.Side.WaitAvailable(ctx, o.namespace, "tiny"))
	w.clean(ctx, t)
	admin, err := shared.blue.Client()
	harness.Must(t, err)
	m := &v1alpha1.Move{}
	harness.Must(t, admin.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: "moved"}, m))
	return m.Status.MoveID
}

// log reads the events of the move, and returns the hash of its state.
func (o *operator) log(ctx context.Context, t *testing.T, id string) string {
	aggregate := "move/" + id
	o.run(ctx, t, 0, []string{"without a gap", "dev.scute.move.verified.v1", aggregate}, "log", "replay", "--nats", o.nats)
	o.run(ctx, t, 0, []string{aggregate, "succeeded"}, "log", "tail", "--lines", "3", "--nats", o.nats)
	events := o.run(ctx, t, 0, []string{"wrong direction"}, "log", "tail", "--lines", "-1", "-o", "json", "--nats", o.nats)
	for line := range strings.Lines(events.out) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	config, _, err := shared.green.Side.ServiceAccountConfig(ctx, scuted.Namespace, "scute-target")
	harness.Must(t, err)
	if head, _, _ := strings.Cut(config.BearerToken, "."); strings.Contains(events.out, head) {
		t.Error("the log contains a token")
	}
	replay := []string{"log", "replay", "--aggregate", aggregate, "--nats", o.nats}
	first, again := o.run(ctx, t, 0, []string{"Succeeded"}, replay...), o.run(ctx, t, 0, nil, replay...)
	hash := regexp.MustCompile(`sha256 ([0-9a-f]{64})`).FindStringSubmatch(first.out)
	if hash == nil || !strings.Contains(again.out, hash[1]) {
		t.Fatalf("two replays have different hashes, or none:\n%s\n%s", first.out, again.out)
	}
	return hash[1]
}
