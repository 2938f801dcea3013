package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/internal/redact"
	"scute.dev/kube"
	"scute.dev/mover"
	"scute.dev/mover/transfer"
)

// Commands returns the commands about backups of clusters and BackupSchedules, by verb.
func Commands(env *cli.Env) kit.Verbs {
	n := newNoun()
	return kit.Verbs{
		"backup": newCmdBackup(env), "restore": newCmdRestore(env),
		"get": kit.Get(env, n), "describe": kit.Describe(env, n), "logs": kit.Logs(env, n),
	}
}

type options struct {
	*kit.Kit
	Format cli.Format
	// cluster is the management cluster of the kubeconfig, and clusterName its name in messages.
	cluster     *connect.Cluster
	clusterName string
}

// validate rejects flags that do not name a management cluster.
func (o *options) validate() error {
	if o.Flags.LogOnly() || o.Flags.Local {
		return cli.Usagef("clusters are in a management cluster: leave out --local, --log and --nats")
	}
	return o.Flags.Check()
}

// connect connects to the management cluster. name is its name in messages.
func (o *options) connect(name string) (c *kube.Cluster, namespace string, err error) {
	cluster, err := o.Flags.Cluster()
	if err != nil {
		return nil, "", err
	}
	o.cluster, o.clusterName = cluster, name
	c, err = kube.Connect(name, cluster.Config)
	return c, cluster.Namespace, err
}

func (o *options) printFindings(list []mover.Finding) {
	if len(list) == 0 {
		return
	}
	v := o.ViewOn(o.Env.Err)
	t := cli.Table{Header: []string{"SEVERITY", "FIELD", "FINDING", "REMEDY"}, Wrap: 3}
	for _, f := range list {
		as := cli.Yellow
		if f.Severity == mover.Error {
			as = cli.Red
		}
		t.Add(v.Paint.Text(as, string(f.Severity)), cli.Clean(f.Field), cli.Clean(redact.Message(f.Message)), cli.Clean(f.Remedy))
	}
	for _, line := range t.Lines(v.Paint, v.Width) {
		fmt.Fprintln(o.Env.Err, cli.Safe(line))
	}
}

// explain returns an error that says what a user can do. After a signal it contains interrupted. If
// the error is a refusal, it contains refused, after the findings. Otherwise it contains the remedy
// of the error.
func (o *options) explain(ctx context.Context, err error, refused, interrupted string) error {
	var refusal *transfer.RefusedError
	var final *transfer.FinalError
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(errors.New("interrupted: " + interrupted))
	case errors.As(err, &refusal):
		o.printFindings(refusal.Findings)
		return errors.New(refused)
	case errors.As(err, &final) && final.Next != "":
		return errors.New(redact.Message(err.Error()) + ": " + final.Next)
	}
	err = redactedError{err}
	if o.cluster != nil && strings.HasPrefix(err.Error(), o.clusterName+": ") {
		return o.cluster.Explain(err)
	}
	return err
}

// redactedError is an error whose text is redacted, because an API server quotes the object that it
// rejects.
type redactedError struct{ err error }

func (q redactedError) Error() string { return redact.Message(q.err.Error()) }

func (q redactedError) Unwrap() error { return q.err }
