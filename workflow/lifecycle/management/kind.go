package management

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Kind creates a cluster in Docker with the program kind. The cluster's name is derived from the
// run, so any cluster with this name was created by this run.
type Kind struct {
	// Image of the nodes, for example kindest/node:v1.36.0. Default: the image of kind.
	Image  string `json:"image,omitempty"`
	Config string `json:"config,omitempty"`
	// Program is the name or path of kind. Default: kind.
	Program string `json:"program,omitempty"`

	folder string
}

const (
	kindTimeout = 5 * time.Minute
	// kindGrace is the time kind has to clean up after an interrupt.
	kindGrace = 20 * time.Second
)

// Create creates the cluster. It first deletes an incomplete cluster of an earlier attempt, but
// never a cluster that has responded before.
func (k *Kind) Create(c *provider.Context) (access.ClusterRef, error) {
	name := clusterName(c.Call().RunKey())
	ref := access.ClusterRef{Kubeconfig: k.kubeconfig(name)}
	var was clusterRecord
	if _, err := c.Recorded("bootstrap", &was); err != nil {
		return ref, err
	}
	there, err := k.Exists(c)
	if err != nil {
		return ref, err
	}
	whole := there && was.Ready
	if err := c.Record("bootstrap", clusterRecord{Name: name, Ready: whole}, false); err != nil {
		return ref, err
	}
	if there {
		c.Progress("using the existing bootstrap cluster " + name)
		if err = k.export(c, name); err == nil {
			err = waitForServer(c, ref)
		}
		switch {
		case err == nil:
			return ref, recordReady(c, name)
		case whole:
			return ref, fmt.Errorf("the bootstrap cluster %s does not respond, and may manage clusters: start it again, or delete it by hand if you do "+
				"not need its objects: %w", name, err)
		}
		c.Progress("deleting the bootstrap cluster " + name + ", which was created only in part")
		if _, err := k.run(c, "delete", "cluster", "--name", name, "--kubeconfig", ref.Kubeconfig); err != nil {
			return ref, err
		}
	}
	if err := os.MkdirAll(k.folder, 0o700); err != nil {
		return ref, fmt.Errorf("creating the folder for kubeconfigs: %w", err)
	}
	c.Progress("creating the bootstrap cluster " + name)
	args := []string{"create", "cluster", "--name", name, "--kubeconfig", ref.Kubeconfig, "--wait", kindTimeout.String()}
	if k.Image != "" {
		args = append(args, "--image", k.Image)
	}
	if k.Config != "" {
		args = append(args, "--config", k.Config)
	}
	if _, err := k.run(c, args...); err != nil {
		return ref, err
	}
	if err := os.Chmod(ref.Kubeconfig, 0o600); err != nil {
		return ref, fmt.Errorf("protecting the kubeconfig of the bootstrap cluster: %w", err)
	}
	if err := waitForServer(c, ref); err != nil {
		return ref, err
	}
	return ref, recordReady(c, name)
}

func recordReady(c *provider.Context, name string) error {
	return c.Record("bootstrap", clusterRecord{Name: name, Ready: true}, false)
}

// Delete deletes the cluster and its kubeconfig.
func (k *Kind) Delete(c *provider.Context) error {
	name := clusterName(c.Call().RunKey())
	there, err := k.Exists(c)
	if err != nil {
		return err
	}
	if there {
		if _, err := k.run(c, "delete", "cluster", "--name", name, "--kubeconfig", k.kubeconfig(name)); err != nil {
			return err
		}
	}
	if err := os.Remove(k.kubeconfig(name)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("removing the kubeconfig of the bootstrap cluster: %w", err)
	}
	return nil
}

// Exists reports whether kind lists the cluster.
func (k *Kind) Exists(c *provider.Context) (bool, error) {
	out, err := k.run(c, "get", "clusters", "--quiet")
	return slices.Contains(strings.Fields(out), clusterName(c.Call().RunKey())), err
}

func (k *Kind) kubeconfig(name string) string { return filepath.Join(k.folder, name+".kubeconfig") }

func clusterName(run string) string {
	sum := sha256.Sum256([]byte(run))
	return fmt.Sprintf("scute-%x", sum[:5])
}

func (k *Kind) export(c *provider.Context, name string) error {
	_, err := k.run(c, "export", "kubeconfig", "--name", name, "--kubeconfig", k.kubeconfig(name))
	if err == nil {
		err = os.Chmod(k.kubeconfig(name), 0o600)
	}
	return err
}

// run runs kind and returns its standard output. An error contains the last lines of kind's
// standard error, which contain no secret.
func (k *Kind) run(c *provider.Context, args ...string) (string, error) {
	program := cmp.Or(k.Program, "kind")
	path, err := exec.LookPath(program)
	if err != nil {
		return "", task.Final(fmt.Errorf("the program %q was not found (%w): install kind and Docker, or name a cluster in bootstrap.cluster", program,
			errors.Unwrap(err)))
	}
	ctx, cancel := context.WithTimeout(c, 3*kindTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = kindGrace
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kind %s: %w: %s", strings.Join(args[:2], " "), err, lastLines(stderr.String()))
	}
	return stdout.String(), nil
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "; ")
}
