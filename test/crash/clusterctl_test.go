package crash

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctl "sigs.k8s.io/cluster-api/cmd/clusterctl/client"
	clusterctllog "sigs.k8s.io/cluster-api/cmd/clusterctl/log"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/comparison"
	"scute.dev/test/process"
	"scute.dev/test/testbed"
)

// clusterctlMove is the argument with which this program runs `clusterctl move`. clusterctl's library does everything
// except reading the flags, so its command is not linked.
const clusterctlMove = "clusterctl-move"

// move runs `clusterctl move` with clusterctl's library. Its arguments are two kubeconfigs, the namespace, and a folder
// without a configuration of clusterctl.
func move(ctx context.Context, args []string) error {
	if err := os.Setenv("XDG_CONFIG_HOME", args[3]); err != nil {
		return err
	}
	clusterctllog.SetLogger(clusterctllog.NewLogger(clusterctllog.WithThreshold(new(1))))
	c, err := clusterctl.New(ctx, "")
	if err != nil {
		return err
	}
	return c.Move(ctx, clusterctl.MoveOptions{
		FromKubeconfig: clusterctl.Kubeconfig{Path: args[0]}, ToKubeconfig: clusterctl.Kubeconfig{Path: args[1]}, Namespace: args[2],
	})
}

// The moments at which clusterctl is killed.

func creating(namespace string) death {
	return death{nth: 5, is: func(r *http.Request, _ string) bool {
		return r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/namespaces/"+namespace+"/")
	}}
}

// deleting returns the moment after the worker's Machine was deleted and before its MachineSet is.
func deleting(string) death {
	return death{source: true, nth: 7, is: func(r *http.Request, _ string) bool { return r.Method == http.MethodDelete }}
}

// releasing returns the moment after the deletion of an object was requested and before its finalizers are removed.
func releasing(string) death {
	return death{source: true, before: true, nth: 1, is: func(r *http.Request, body string) bool {
		return r.Method == http.MethodPatch && strings.Contains(body, `"finalizers":[]`)
	}}
}

func resuming(string) death {
	return death{before: true, nth: 1, is: func(r *http.Request, body string) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/clusters/"+clusterName) && strings.Contains(body, `"paused":null`)
	}}
}

// command runs `clusterctl move` for one namespace.
type command struct {
	namespace, folder string
	runs              int
}

func (c *command) start(from kubeconfigs) (*process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c.runs++
	return process.Start(process.Spec{
		Path: self, Args: []string{clusterctlMove, from.source, from.target, c.namespace, filepath.Join(c.folder, "none")},
		Log: filepath.Join(c.folder, fmt.Sprintf("clusterctl-%s-%d.log", c.namespace, c.runs)),
	})
}

// succeeded is the prefix of the result of a command that exited successfully.
const succeeded = "exit status 0"

// run runs the command and returns the result that a user sees. It kills the command after the user's patience.
func (c *command) run(ctx context.Context) (string, error) {
	p, err := c.start(kubeconfigs{shared.blue.Side.KubeconfigPath(), shared.green.Side.KubeconfigPath()})
	if err != nil {
		return "", err
	}
	began := time.Now()
	select {
	case <-p.Done():
	case <-time.After(patience()):
		return fmt.Sprintf("not over after %s: %s", patience(), lastLine(p.Log())), p.Kill(ctx)
	case <-ctx.Done():
		return "", fmt.Errorf("running clusterctl move: %w: see %s", ctx.Err(), p.Log())
	}
	took := time.Since(began).Round(time.Second)
	if p.ExitCode() == 0 {
		return fmt.Sprintf("%s after %s", succeeded, took), nil
	}
	return fmt.Sprintf("exit status %d after %s: %s", p.ExitCode(), took, lastLine(p.Log())), nil
}

// lastLine returns the first line of the last error in a log, short enough for a table.
func lastLine(path string) string {
	const most = 240
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	_, said, found := strings.Cut("\n"+string(text), "\nError: ")
	if !found {
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		said = lines[len(lines)-1]
	}
	line, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	if len(line) > most {
		line = line[:most] + "..."
	}
	return line
}

// playClusterctl kills clusterctl, runs it again, and then does what a user can do according to its output.
func (c *crashed) playClusterctl(ctx context.Context, k *killer) (e comparison.Ending, err error) {
	cmd := &command{namespace: c.namespace, folder: shared.bed.Logs()}
	if k.victim, err = cmd.start(k.from); err != nil {
		return e, err
	}
	close(k.begun)
	select {
	case <-k.victim.Done():
	case <-ctx.Done():
		return e, fmt.Errorf("waiting for clusterctl to be killed: %w: see %s", ctx.Err(), k.victim.Log())
	}
	if !k.victim.Killed() {
		return e, fmt.Errorf("clusterctl ended before it came to the write at which it is killed: %s: see %s", lastLine(k.victim.Log()), k.victim.Log())
	}
	if e.Left, err = c.sides(ctx); err != nil {
		return e, err
	}
	if e.Again, err = cmd.run(ctx); err != nil {
		return e, err
	}
	within := settles()
	if !strings.HasPrefix(e.Again, succeeded) {
		within = 0 // it changed nothing, or everything that it could
	}
	if e.Then, err = c.settled(ctx, &e, within); err != nil || e.Whole() {
		return e, err
	}
	if e.ByHand, err = c.byHand(ctx, cmd); err != nil {
		return e, err
	}
	_, err = c.settled(ctx, &e, settles())
	return e, err
}

// byHand removes the pause on the side that has the Cluster, and waits until the Cluster's controller has noticed. If
// this side is the source, it runs the command again. It returns what was done, and the command's result.
func (c *crashed) byHand(ctx context.Context, cmd *command) (string, error) {
	source, err := c.has(ctx, shared.blue.Side)
	if err != nil {
		return "", err
	}
	if !source {
		return c.lift(ctx, shared.green.Side, "target")
	}
	did, err := c.lift(ctx, shared.blue.Side, "source")
	if err != nil {
		return "", err
	}
	came, err := cmd.run(ctx)
	return did + "; then " + came, err
}

// has reports whether a side has the Cluster.
func (c *crashed) has(ctx context.Context, side *testbed.Side) (bool, error) {
	err := side.Client().Get(ctx, c.key(), &clusterv1.Cluster{})
	return err == nil, client.IgnoreNotFound(err)
}

func (c *crashed) key() client.ObjectKey {
	return client.ObjectKey{Namespace: c.namespace, Name: clusterName}
}

// lift removes the pause of the Cluster and of its ClusterClass on a side.
func (c *crashed) lift(ctx context.Context, side *testbed.Side, name string) (string, error) {
	class, cluster := &clusterv1.ClusterClass{}, &clusterv1.Cluster{}
	class.Namespace, class.Name = c.namespace, className
	cluster.Namespace, cluster.Name = c.namespace, clusterName
	annotation := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+clusterv1.PausedAnnotation+`":null}}}`))
	if err := client.IgnoreNotFound(side.Client().Patch(ctx, class, annotation)); err != nil {
		return fmt.Sprintf("ClusterClass of the %s cannot be unpaused: %v", name, err), nil
	}
	if err := side.Client().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":null}}`))); err != nil {
		return fmt.Sprintf("Cluster of the %s cannot be unpaused: %v", name, err), nil
	}
	return name + " unpaused", c.noticed(ctx, side)
}

// noticed waits until the Cluster's condition Paused is False, or until a user would give up.
func (c *crashed) noticed(ctx context.Context, side *testbed.Side) error {
	for until := time.Now().Add(settles()); time.Now().Before(until); {
		cluster := &clusterv1.Cluster{}
		if err := side.Client().Get(ctx, c.key(), cluster); err != nil {
			return client.IgnoreNotFound(err)
		}
		if conditions.IsFalse(cluster, clusterv1.PausedCondition) {
			return nil
		}
		if err := look(ctx); err != nil {
			return err
		}
	}
	return nil
}
